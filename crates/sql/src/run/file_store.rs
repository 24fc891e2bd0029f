//! The one file that `copy` writes, as DataFusion's writers of files see it.
//!
//! They end a file as usual when the rows before it have failed, and go on writing for a while when a statement was dropped. So they
//! get no path: what they write goes to an open file, of which whoever opened it knows what it is worth.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path as FilePath;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::error::Result as Planned;
use datafusion::execution::object_store::{
    DefaultObjectStoreRegistry, ObjectStoreRegistry, ObjectStoreUrl,
};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::object_store::path::Path;
use datafusion::object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use futures::stream::{self, BoxStream, StreamExt};
use parking_lot::Mutex;

use crate::error;
use crate::resources::whole_file::failed;

/// Where a plan finds the store.
const STORE: &str = "copy://file";

/// What a plan writes to.
pub(crate) const TARGET: &str = "copy://file/rows";

/// An open file as a store that has nothing else.
#[derive(Clone, Debug)]
pub(crate) struct FileStore {
    file: Arc<File>,
    /// The first failure to write.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl FileStore {
    pub(crate) fn new(file: Arc<File>) -> FileStore {
        FileStore {
            file,
            failure: Arc::default(),
        }
    }

    /// `runtime` with this store.
    ///
    /// # Errors
    /// None that is expected.
    pub(crate) fn within(&self, runtime: &RuntimeEnv) -> Planned<Arc<RuntimeEnv>> {
        let registry = DefaultObjectStoreRegistry::new();
        let url = ObjectStoreUrl::parse(STORE)?;
        registry.register_store(url.as_ref(), Arc::new(self.clone()));
        Ok(Arc::new(RuntimeEnv {
            object_store_registry: Arc::new(registry),
            ..runtime.clone()
        }))
    }

    /// Why `path` could not be written, if that is what failed; the writers tell less.
    pub(crate) fn failure(&self, path: &FilePath) -> Option<error::Error> {
        let failure = self.failure.lock();
        failure.as_ref().map(|e| failed(path, e))
    }

    /// Writes `payload` from the byte `from` on.
    async fn write(self, payload: PutPayload, mut from: u64) -> Result<()> {
        let work = move || {
            for bytes in payload.iter() {
                if let Err(e) = self.file.write_all_at(bytes, from) {
                    let told = e.to_string();
                    self.failure.lock().get_or_insert(e);
                    return Err(other(told));
                }
                from += bytes.len() as u64;
            }
            Ok(())
        };
        let written = tokio::task::spawn_blocking(work).await;
        written.unwrap_or_else(|e| Err(other(e.to_string())))
    }
}

/// A failure in the words of the writers.
fn other(told: String) -> Error {
    Error::Generic {
        store: "file",
        source: told.into(),
    }
}

/// The refusal of all but writing.
fn only_written() -> Error {
    other("the file of `copy` is only written".into())
}

impl fmt::Display for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the file of `copy`")
    }
}

#[async_trait]
impl ObjectStore for FileStore {
    async fn put_opts(
        &self,
        _location: &Path,
        payload: PutPayload,
        _options: PutOptions,
    ) -> Result<PutResult> {
        self.clone().write(payload, 0).await?;
        Ok(put())
    }

    async fn put_multipart_opts(
        &self,
        _location: &Path,
        _options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        Ok(Box::new(Parts {
            store: self.clone(),
            written: 0,
        }))
    }

    async fn get_opts(&self, _location: &Path, _options: GetOptions) -> Result<GetResult> {
        Err(only_written())
    }

    fn delete_stream(
        &self,
        _locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        stream::once(async { Err(only_written()) }).boxed()
    }

    fn list(&self, _prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        stream::once(async { Err(only_written()) }).boxed()
    }

    async fn list_with_delimiter(&self, _prefix: Option<&Path>) -> Result<ListResult> {
        Err(only_written())
    }

    async fn copy_opts(&self, _from: &Path, _to: &Path, _options: CopyOptions) -> Result<()> {
        Err(only_written())
    }
}

fn put() -> PutResult {
    PutResult {
        e_tag: None,
        version: None,
    }
}

/// A file that is written in parts, several at a time.
#[derive(Debug)]
struct Parts {
    store: FileStore,
    /// Bytes of the parts so far.
    written: u64,
}

#[async_trait]
impl MultipartUpload for Parts {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let from = self.written;
        self.written += data.content_length() as u64;
        Box::pin(self.store.clone().write(data, from))
    }

    async fn complete(&mut self) -> Result<PutResult> {
        Ok(put())
    }

    async fn abort(&mut self) -> Result<()> {
        Ok(())
    }
}
