//! The net that decides.

use petri::Net;

use crate::error::Result;

/// The net by which a database gets its cores; another can be read with [`petri::Net::parse`].
///
/// # Errors
///
/// None, as it is tested.
pub fn elastic_net() -> Result<Net> {
    Ok(Net::parse(petri::ELASTIC)?)
}
