//! TLS: a certificate and its key from files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, Result};

/// The configuration for a chain of certificates and the key of its first one, both in PEM.
///
/// # Errors
/// [`Error::File`] if one cannot be read, or they do not belong together.
pub(crate) fn configuration(certificate: &Path, key: &Path) -> Result<Arc<ServerConfig>> {
    let wrong = |path: &Path, reason: String| Error::File {
        path: path.to_path_buf(),
        line: None,
        reason,
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
        .map_err(|e| wrong(certificate, e.to_string()))?;
    if chain.is_empty() {
        return Err(wrong(certificate, "there is no certificate in it".into()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(|e| wrong(key, e.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| wrong(certificate, e.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|e| wrong(certificate, e.to_string()))?;
    Ok(Arc::new(config))
}
