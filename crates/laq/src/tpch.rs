//! Queries of TPC-H in LAQ.

macro_rules! queries {
    ($($number:literal $name:literal)*) => {
        [$(($number, include_str!(concat!("../queries/q", $name, ".laq")))),*]
    };
}

/// Number and text of the queries of TPC-H, which stand in `crates/laq/queries`, with the parameters of the published
/// answers (query 11: those for scale 1).
pub const TPCH: [(usize, &str); 22] = queries!(
    1 "01" 2 "02" 3 "03" 4 "04" 5 "05" 6 "06" 7 "07" 8 "08" 9 "09" 10 "10" 11 "11"
    12 "12" 13 "13" 14 "14" 15 "15" 16 "16" 17 "17" 18 "18" 19 "19" 20 "20" 21 "21" 22 "22"
);
