//! TLS, clients' certificates, and certificates that change.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

mod common;

use common::{Caller, Ended, Host, closes_after, config};
use grpchost_server::{ClientCertificates, Counters, Error, Limits, Queue, Server, Tls};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::{TlsConnector, client::TlsStream};

/// A certificate authority.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key; PEM.
struct Signed {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    fn signs(&self, name: &str, alternatives: Vec<SanType>) -> Signed {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.subject_alt_names = alternatives;
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    fn server(&self, clients: ClientCertificates) -> Tls {
        let signed = self.signs("server", vec![SanType::DnsName("localhost".try_into().unwrap())]);
        Tls { certificates: signed.certificate.into(), key: signed.key.into(), clients }
    }

    fn required(&self) -> ClientCertificates {
        ClientCertificates::Required(self.pem.clone().into())
    }

    fn optional(&self) -> ClientCertificates {
        ClientCertificates::Optional(self.pem.clone().into())
    }

    /// Trusts this authority, and shows a certificate if it has one.
    async fn connects(&self, host: &Host, shows: Option<&Signed>) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let mut client = match shows {
            None => builder.with_no_client_auth(),
            Some(signed) => {
                let certificate = CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap();
                let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
                builder.with_client_auth_cert(vec![certificate], key).unwrap()
            }
        };
        client.alpn_protocols = vec![b"h2".to_vec()];
        let stream = TcpStream::connect(host.address()).await?;
        TlsConnector::from(Arc::new(client)).connect(ServerName::try_from("localhost").unwrap(), stream).await
    }

    /// Whom a call is from, in the eyes of the server.
    async fn seen_as(&self, host: &Host, shows: Option<&Signed>) -> Option<String> {
        let mut caller = Caller::over(self.connects(host, shows).await.unwrap()).await;
        let answer = caller.call(b"who am I?").await;
        let calls = host.turn().await;
        let identity = calls[0].peer.identity.clone();
        host.echo(calls);
        assert_eq!(answer.end().await, Ended::ok(b"who am I?"));
        identity
    }

    /// No call gets through. In TLS 1.3 a client learns only with its first words that it was not let in.
    async fn is_turned_away(&self, host: &Host, shows: Option<&Signed>) {
        let failed = host.count("handshakes_failed");
        if let Ok(stream) = self.connects(host, shows).await
            && let Ok(caller) = Caller::try_over(stream).await
        {
            assert!(caller.ended().await.is_err());
        }
        host.counts("handshakes_failed", failed + 1).await;
    }
}

fn host(tls: Tls) -> Host {
    Host::start(config(Limits { handshake: Duration::from_secs(5), ..Limits::default() }, Some(tls)))
}

#[tokio::test]
async fn a_client_is_its_uri_else_its_dns_name_else_its_common_name() {
    let authority = Authority::new();
    let host = host(authority.server(authority.required()));
    let uri = SanType::URI("spiffe://mesh/checkout".try_into().unwrap());
    let dns = SanType::DnsName("checkout.example.org".try_into().unwrap());
    for (alternatives, seen) in [
        (vec![dns.clone(), uri], "spiffe://mesh/checkout"),
        (vec![dns], "checkout.example.org"),
        (vec![], "checkout"),
    ] {
        let shows = authority.signs("checkout", alternatives);
        assert_eq!(authority.seen_as(&host, Some(&shows)).await.as_deref(), Some(seen));
    }
}

#[tokio::test]
async fn where_certificates_are_required_only_those_of_the_authority_get_in() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let host = host(authority.server(authority.required()));
    authority.is_turned_away(&host, None).await;
    authority.is_turned_away(&host, Some(&stranger.signs("stranger", vec![]))).await;
    authority.seen_as(&host, Some(&authority.signs("known", vec![]))).await.unwrap();
    host.counts("connections", 0).await;
}

#[tokio::test]
async fn where_they_are_optional_a_wrong_one_does_not_get_in_but_none_does() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let host = host(authority.server(authority.optional()));
    assert_eq!(authority.seen_as(&host, None).await, None);
    authority.is_turned_away(&host, Some(&stranger.signs("stranger", vec![]))).await;
}

#[tokio::test]
async fn where_none_are_asked_for_nobody_has_an_identity() {
    let authority = Authority::new();
    let host = host(authority.server(ClientCertificates::Ignored));
    assert_eq!(authority.seen_as(&host, Some(&authority.signs("known", vec![]))).await, None);
}

#[tokio::test]
async fn reloaded_certificates_are_for_new_connections_and_hurt_no_old_one() {
    let (old, new) = (Authority::new(), Authority::new());
    let host = host(old.server(ClientCertificates::Ignored));
    let mut caller = Caller::over(old.connects(&host, None).await.unwrap()).await;
    host.server.reload(&new.server(new.required())).unwrap();
    let answer = caller.call(b"still here").await;
    host.echo(host.turn().await);
    assert_eq!(answer.end().await, Ended::ok(b"still here"));
    assert!(old.connects(&host, None).await.is_err());
    host.counts("handshakes_failed", 1).await;
    new.is_turned_away(&host, None).await;
    new.seen_as(&host, Some(&new.signs("known", vec![]))).await.unwrap();
}

#[tokio::test]
async fn what_cant_be_used_says_which_part_and_changes_nothing() {
    let authority = Authority::new();
    let good = authority.server(ClientCertificates::Ignored);
    let other = authority.server(ClientCertificates::Ignored);
    let host = host(good.clone());
    for (wrong, says) in [
        (Tls { certificates: b"nothing".to_vec(), ..good.clone() }, "certificate: there is no certificate"),
        (Tls { key: b"nothing".to_vec(), ..good.clone() }, "private key: "),
        (Tls { key: other.key, ..good.clone() }, "certificate and key: "),
        (
            Tls { clients: ClientCertificates::Required(vec![]), ..good },
            "clients' authority: there is no certificate",
        ),
    ] {
        let Err(Error::Tls(message)) = host.server.reload(&wrong) else { panic!("{says}") };
        assert!(message.starts_with(says), "{message}");
        let counters = Arc::new(Counters::default());
        let inbox = Queue::new(Arc::clone(&counters)).unwrap();
        let started = Server::start(config(Limits::default(), Some(wrong)), inbox, counters);
        assert!(matches!(started, Err(Error::Tls(_))));
    }
    authority.seen_as(&host, None).await;
    let plain = Host::with(Limits::default());
    assert!(matches!(plain.server.reload(&authority.server(ClientCertificates::Ignored)), Err(Error::Tls(_))));
}

#[tokio::test]
async fn who_speaks_no_tls_or_nothing_at_all_is_closed() {
    let authority = Authority::new();
    let tls = authority.server(ClientCertificates::Ignored);
    let host = Host::start(config(Limits { handshake: Duration::from_millis(100), ..Limits::default() }, Some(tls)));
    closes_after(&host.address(), b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    closes_after(&host.address(), b"").await;
    host.counts("handshakes_failed", 2).await;
    host.counts("connections", 0).await;
}
