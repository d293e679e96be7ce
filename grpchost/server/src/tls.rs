//! Keys, certificates, and what is asked of clients.

use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use rustls::server::{NoClientAuth, WebPkiClientVerifier, danger::ClientCertVerifier};
use rustls::{RootCertStore, ServerConfig, crypto::ring};
use std::fmt::Display;
use std::sync::Arc;

/// Whether clients have to show a certificate.
#[derive(Clone, Debug)]
pub enum ClientCertificates {
    /// None is asked for.
    Ignored,
    /// One that is shown has to be signed by these authorities (PEM).
    Optional(Vec<u8>),
    /// One has to be shown, signed by these authorities (PEM).
    Required(Vec<u8>),
}

/// What a server proves itself with; PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The server's own first, then those that lead to its root.
    pub certificates: Vec<u8>,
    pub key: Vec<u8>,
    pub clients: ClientCertificates,
}

impl Tls {
    /// Ready to be served with. The error says which part is wrong.
    pub(crate) fn config(&self) -> Result<Arc<ServerConfig>, String> {
        let certificates = read_certificates(&self.certificates, "certificate")?;
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(wrong("private key"))?;
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(wrong("TLS"))?
            .with_client_cert_verifier(self.verifier()?)
            .with_single_cert(certificates, key)
            .map_err(wrong("certificate and key"))?;
        config.alpn_protocols = vec![b"h2".to_vec()];
        Ok(Arc::new(config))
    }

    fn verifier(&self) -> Result<Arc<dyn ClientCertVerifier>, String> {
        let (authorities, required) = match &self.clients {
            ClientCertificates::Ignored => return Ok(Arc::new(NoClientAuth)),
            ClientCertificates::Optional(authorities) => (authorities, false),
            ClientCertificates::Required(authorities) => (authorities, true),
        };
        let mut roots = RootCertStore::empty();
        for certificate in read_certificates(authorities, "clients' authority")? {
            roots.add(certificate).map_err(wrong("clients' authority"))?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = if required { builder } else { builder.allow_unauthenticated() };
        let verifier = builder.build().map_err(wrong("clients' authority"))?;
        Ok(verifier)
    }
}

fn read_certificates(pem: &[u8], what: &'static str) -> Result<Vec<CertificateDer<'static>>, String> {
    let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>().map_err(wrong(what))?;
    if certificates.is_empty() {
        Err(format!("{what}: there is no certificate in the PEM"))
    } else {
        Ok(certificates)
    }
}

fn wrong<E: Display>(what: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{what}: {error}")
}
