//! Batches for other libraries, by the Arrow C stream interface.
//!
//! The structures are those of the [specification](https://arrow.apache.org/docs/format/CDataInterface.html). They are
//! written here because the feature of `arrow` that has them changes what all of DataFusion is compiled against
//! (decision 84). Only what leaves an answer is needed: columns without dictionaries.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::buffer::{BooleanBuffer, Buffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};

/// The name of a capsule with a stream.
pub(crate) const STREAM: &CStr = c"arrow_array_stream";

/// `struct ArrowSchema`.
#[repr(C)]
struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private_data: *mut c_void,
}

/// `struct ArrowArray`.
#[repr(C)]
struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *const *const c_void,
    children: *mut *mut CArray,
    dictionary: *mut CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private_data: *mut c_void,
}

/// `struct ArrowArrayStream`.
#[repr(C)]
pub(crate) struct CStream {
    get_schema: Option<unsafe extern "C" fn(*mut CStream, *mut CSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut CStream, *mut CArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut CStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut CStream)>,
    private_data: *mut c_void,
}

// SAFETY: what `private_data` points to is a `Stream`, which is `Send`, and owned by this alone.
unsafe impl Send for CStream {}

impl Drop for CStream {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: a stream that has a release function is whole, and nobody has released it.
            unsafe { release(self) }
        }
    }
}

/// Batches to hand over, each when it is asked for; an error is a text.
type Batches = Box<dyn Iterator<Item = Result<RecordBatch, String>> + Send>;

struct Stream {
    schema: SchemaRef,
    batches: Batches,
    error: CString,
}

/// A stream of `batches`, whose texts are copied: those of a table borrow the pages of the buffer pool, which other
/// libraries would keep for as long as they like.
pub(crate) fn stream(schema: &SchemaRef, batches: Batches) -> CStream {
    let stream = Stream {
        schema: own_schema(schema),
        batches,
        error: CString::default(),
    };
    CStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(stream)).cast(),
    }
}

/// The type as which a column leaves: texts with their own bytes, in place of views.
fn own(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View => DataType::Utf8,
        DataType::BinaryView => DataType::Binary,
        DataType::Dictionary(_, value) => own(value),
        other => other.clone(),
    }
}

fn own_schema(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter();
    let fields = fields.map(|f| Field::new(f.name(), own(f.data_type()), f.is_nullable()));
    Schema::new(fields.collect::<Vec<_>>()).into()
}

/// The format of a type, or its SQL name if it has none here.
fn format(data_type: &DataType) -> Result<String, String> {
    use DataType::*;
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 's',
        TimeUnit::Millisecond => 'm',
        TimeUnit::Microsecond => 'u',
        TimeUnit::Nanosecond => 'n',
    };
    Ok(match data_type {
        Null => "n".into(),
        Boolean => "b".into(),
        Int8 => "c".into(),
        UInt8 => "C".into(),
        Int16 => "s".into(),
        UInt16 => "S".into(),
        Int32 => "i".into(),
        UInt32 => "I".into(),
        Int64 => "l".into(),
        UInt64 => "L".into(),
        Float16 => "e".into(),
        Float32 => "f".into(),
        Float64 => "g".into(),
        Binary => "z".into(),
        LargeBinary => "Z".into(),
        Utf8 => "u".into(),
        LargeUtf8 => "U".into(),
        FixedSizeBinary(width) => format!("w:{width}"),
        Decimal128(precision, scale) => format!("d:{precision},{scale}"),
        Date32 => "tdD".into(),
        Date64 => "tdm".into(),
        Time32(of) | Time64(of) => format!("tt{}", unit(of)),
        Timestamp(of, zone) => format!("ts{}:{}", unit(of), zone.as_deref().unwrap_or("")),
        Duration(of) => format!("tD{}", unit(of)),
        Interval(IntervalUnit::YearMonth) => "tiM".into(),
        Interval(IntervalUnit::DayTime) => "tiD".into(),
        Interval(IntervalUnit::MonthDayNano) => "tin".into(),
        List(_) => "+l".into(),
        LargeList(_) => "+L".into(),
        Struct(_) => "+s".into(),
        other => return Err(sql::type_name(other)),
    })
}

/// What a schema that was handed over owns.
struct OwnedSchema {
    _format: CString,
    _name: CString,
    children: Vec<*mut CSchema>,
}

fn schema_of(name: &str, data_type: &DataType, nullable: bool) -> Result<CSchema, String> {
    let children: Vec<&Field> = match data_type {
        DataType::List(item) | DataType::LargeList(item) => vec![item],
        DataType::Struct(fields) => fields.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    let children = children
        .into_iter()
        .map(|f| schema_of(f.name(), f.data_type(), f.is_nullable()))
        .collect::<Result<Vec<_>, _>>()?;
    let children = children.into_iter().map(|c| Box::into_raw(Box::new(c)));
    let format = CString::new(format(data_type)?).map_err(|e| e.to_string())?;
    // A name with a zero byte ends there.
    let name = CString::new(name.split('\0').next().unwrap_or("")).unwrap_or_default();
    let (format_at, name_at) = (format.as_ptr(), name.as_ptr());
    let mut owned = Box::new(OwnedSchema {
        _format: format,
        _name: name,
        children: children.collect(),
    });
    Ok(CSchema {
        format: format_at,
        name: name_at,
        metadata: ptr::null(),
        flags: if nullable { 2 } else { 0 },
        n_children: owned.children.len() as i64,
        children: owned.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_schema),
        private_data: Box::into_raw(owned).cast(),
    })
}

unsafe extern "C" fn release_schema(schema: *mut CSchema) {
    // SAFETY: the caller hands over a schema that `schema_of` made and nobody has released.
    let schema = unsafe { &mut *schema };
    // SAFETY: it is the box that `schema_of` made.
    let owned = unsafe { Box::from_raw(schema.private_data.cast::<OwnedSchema>()) };
    for child in &owned.children {
        // SAFETY: the children are boxes that `schema_of` made; the consumer may have moved one out, and has then
        // taken its release function away.
        let child = unsafe { Box::from_raw(*child) };
        if let Some(release) = child.release {
            // SAFETY: it has not been released.
            unsafe { release(Box::into_raw(child)) }
        }
    }
    schema.release = None;
}

/// What an array that was handed over owns.
struct OwnedArray {
    _buffers: Vec<Option<Buffer>>,
    pointers: Vec<*const c_void>,
    children: Vec<*mut CArray>,
}

fn array_of(
    length: usize,
    offset: usize,
    nulls: usize,
    buffers: Vec<Option<Buffer>>,
    children: Vec<CArray>,
) -> CArray {
    let pointers = buffers.iter().map(|buffer| match buffer {
        Some(buffer) => buffer.as_ptr().cast::<c_void>(),
        None => ptr::null(),
    });
    let pointers = pointers.collect();
    let children = children.into_iter().map(|c| Box::into_raw(Box::new(c)));
    let mut owned = Box::new(OwnedArray {
        pointers,
        children: children.collect(),
        _buffers: buffers,
    });
    CArray {
        length: length as i64,
        null_count: nulls as i64,
        offset: offset as i64,
        n_buffers: owned.pointers.len() as i64,
        n_children: owned.children.len() as i64,
        buffers: owned.pointers.as_ptr(),
        children: owned.children.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(owned).cast(),
    }
}

unsafe extern "C" fn release_array(array: *mut CArray) {
    // SAFETY: the caller hands over an array that `array_of` made and nobody has released.
    let array = unsafe { &mut *array };
    // SAFETY: it is the box that `array_of` made.
    let owned = unsafe { Box::from_raw(array.private_data.cast::<OwnedArray>()) };
    for child in &owned.children {
        // SAFETY: as in `release_schema`.
        let child = unsafe { Box::from_raw(*child) };
        if let Some(release) = child.release {
            // SAFETY: it has not been released.
            unsafe { release(Box::into_raw(child)) }
        }
    }
    array.release = None;
}

/// An array, whose type has a [`format`].
fn exported(data: &arrow::array::ArrayData) -> CArray {
    let (length, offset) = (data.len(), data.offset());
    let valid = data.nulls().map(|nulls| {
        // The bits begin where those of the values do.
        let shifted = std::iter::repeat_n(false, offset).chain(nulls.inner());
        shifted.collect::<BooleanBuffer>().into_inner()
    });
    let mut buffers = Vec::new();
    if data.data_type() != &DataType::Null {
        buffers.push(valid);
    }
    buffers.extend(data.buffers().iter().cloned().map(Some));
    let children = data.child_data().iter().map(exported).collect();
    let nulls = match data.data_type() {
        DataType::Null => length,
        _ => data.null_count(),
    };
    array_of(length, offset, nulls, buffers, children)
}

fn batch_of(batch: &RecordBatch) -> Result<CArray, String> {
    let column = |array: &ArrayRef| {
        let array = cast(array, &own(array.data_type())).map_err(|e| e.to_string())?;
        Ok(exported(&array.to_data()))
    };
    let children = batch.columns().iter().map(column);
    let children = children.collect::<Result<Vec<_>, String>>()?;
    Ok(array_of(batch.num_rows(), 0, 0, vec![None], children))
}

/// Of `errno`: the stream failed, as its last error says.
const FAILED: c_int = 5;

/// The state of a stream.
///
/// # Safety
/// `stream` is one that [`stream`] made, and is not released.
unsafe fn state<'a>(stream: *mut CStream) -> &'a mut Stream {
    // SAFETY: the caller promises it.
    unsafe { &mut *(*stream).private_data.cast::<Stream>() }
}

fn failed(stream: &mut Stream, error: &str) -> c_int {
    stream.error = CString::new(error.replace('\0', " ")).unwrap_or_default();
    FAILED
}

unsafe extern "C" fn get_schema(this: *mut CStream, out: *mut CSchema) -> c_int {
    // SAFETY: the interface hands over a stream that is not released.
    let stream = unsafe { state(this) };
    match schema_of("", &DataType::Struct(stream.schema.fields().clone()), false) {
        Ok(schema) => {
            // SAFETY: the interface hands over room for a schema, which holds nothing yet.
            unsafe { ptr::write(out, schema) };
            0
        }
        Err(name) => {
            let text = format!("columns of type {name} cannot be handed over: cast them to text");
            failed(stream, &text)
        }
    }
}

unsafe extern "C" fn get_next(this: *mut CStream, out: *mut CArray) -> c_int {
    // SAFETY: the interface hands over a stream that is not released.
    let stream = unsafe { state(this) };
    let next = stream.batches.next();
    let array = match next {
        Some(Ok(batch)) => batch_of(&batch),
        Some(Err(error)) => Err(error),
        None => {
            let mut end = array_of(0, 0, 0, Vec::new(), Vec::new());
            // SAFETY: it was just made. An array without a release function is the end of a stream.
            unsafe { release_array(&mut end) };
            Ok(end)
        }
    };
    match array {
        Ok(array) => {
            // SAFETY: the interface hands over room for an array, which holds nothing yet.
            unsafe { ptr::write(out, array) };
            0
        }
        Err(error) => failed(stream, &error),
    }
}

unsafe extern "C" fn get_last_error(this: *mut CStream) -> *const c_char {
    // SAFETY: the interface hands over a stream that is not released.
    unsafe { state(this) }.error.as_ptr()
}

unsafe extern "C" fn release_stream(this: *mut CStream) {
    // SAFETY: the interface hands over a stream that is not released.
    let this = unsafe { &mut *this };
    // SAFETY: it is the box that `stream` made.
    drop(unsafe { Box::from_raw(this.private_data.cast::<Stream>()) });
    this.release = None;
}
