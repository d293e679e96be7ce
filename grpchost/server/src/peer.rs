//! Who calls.

use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The other end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// `10.0.0.1:4000`, `[::1]:4000`, or `unix:` with the path it came in by.
    pub address: String,
    /// Who the client's certificate, which has been verified, says it is.
    pub identity: Option<String>,
}

/// The first URI of the certificate's alternative names, else the first DNS name, else the subject's common name.
pub fn identity(certificate: &CertificateDer<'_>) -> Option<String> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    let name = certificate.valid_uri_names().next().or_else(|| certificate.valid_dns_names().next());
    name.map_or_else(|| common_name(certificate.subject()), |name| Some(name.to_owned()))
}

/// The last common name of a subject: `RDNSequence` in DER, without its own tag (RFC 5280, 4.1.2.4).
///
/// Own code: webpki hands subjects on as they are, and a parser of all of X.509 is a great deal for a legacy name.
fn common_name(mut subject: &[u8]) -> Option<String> {
    const OID: &[u8] = &[0x55, 0x04, 0x03];
    let mut found = None;
    while let Some((_, mut names)) = element(&mut subject) {
        while let Some((_, mut name)) = element(&mut names) {
            let (oid, value) = (element(&mut name), element(&mut name));
            // PrintableString, UTF8String, IA5String
            if let (Some((0x06, OID)), Some((0x13 | 0x0c | 0x16, text))) = (oid, value) {
                found = String::from_utf8(text.to_vec()).ok();
            }
        }
    }
    found
}

/// The next element of DER: tag and contents. None at the end, or where it is none.
fn element<'a>(rest: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, after) = rest.split_first()?;
    let (&first, mut after) = after.split_first()?;
    let length = if first < 0x80 {
        usize::from(first)
    } else {
        let bytes = after.get(..usize::from(first & 0x7f)).filter(|bytes| bytes.len() <= 2)?;
        after = &after[bytes.len()..];
        bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte))
    };
    let contents = after.get(..length)?;
    *rest = &after[length..];
    Some((tag, contents))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_name_is_found_behind_other_names() {
        let country = [0x31, 11, 0x30, 9, 0x06, 3, 0x55, 4, 6, 0x13, 2, b'C', b'H'];
        let common = [0x31, 14, 0x30, 12, 0x06, 3, 0x55, 4, 3, 0x0c, 5, b'e', b'n', b'v', b'o', b'y'];
        assert_eq!(common_name(&[&country[..], &common[..]].concat()).as_deref(), Some("envoy"));
        assert_eq!(common_name(&country), None);
    }

    #[test]
    fn what_is_no_der_has_no_name() {
        for broken in
            [&[][..], &[0x31], &[0x31, 0x80], &[0x31, 0x84, 1, 1, 1, 1], &[0x31, 9, 0x30], &[0x31, 0x82, 0xff]]
        {
            assert_eq!(common_name(broken), None);
        }
    }
}
