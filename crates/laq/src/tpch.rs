//! Queries of TPC-H in LAQ.

macro_rules! queries {
    ($($number:literal $name:literal)*) => {
        [$(($number, include_str!(concat!("../queries/q", $name, ".laq")))),*]
    };
}

/// Number and text of the queries of TPC-H that stand in `crates/laq/queries`, with the parameters of the published
/// answers (query 11: those for scale 1).
pub const TPCH: [(usize, &str); 7] = queries!(1 "01" 3 "03" 4 "04" 6 "06" 11 "11" 12 "12" 14 "14");
