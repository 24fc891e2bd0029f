//! The eight tables: their columns, keys and sizes.

use table::{Definition, ForeignKey};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

/// A table of TPC-H.
pub(crate) struct Shape {
    pub name: &'static str,
    pub primary_key: &'static [&'static str],
    /// The columns of each foreign key and its parent; the parent's columns are those of its primary key.
    pub foreign_keys: &'static [(&'static [&'static str], &'static str)],
    /// Bytes of a row in a `.tbl` file, on average; for the progress bar only.
    pub row_bytes: f64,
}

/// The tables, parents before children.
pub(crate) const SHAPES: [Shape; 8] = [
    Shape {
        name: "region",
        primary_key: &["r_regionkey"],
        foreign_keys: &[],
        row_bytes: 77.8,
    },
    Shape {
        name: "nation",
        primary_key: &["n_nationkey"],
        foreign_keys: &[(&["n_regionkey"], "region")],
        row_bytes: 89.0,
    },
    Shape {
        name: "part",
        primary_key: &["p_partkey"],
        foreign_keys: &[],
        row_bytes: 120.7,
    },
    Shape {
        name: "supplier",
        primary_key: &["s_suppkey"],
        foreign_keys: &[(&["s_nationkey"], "nation")],
        row_bytes: 140.9,
    },
    Shape {
        name: "customer",
        primary_key: &["c_custkey"],
        foreign_keys: &[(&["c_nationkey"], "nation")],
        row_bytes: 162.3,
    },
    Shape {
        name: "partsupp",
        primary_key: &["ps_partkey", "ps_suppkey"],
        foreign_keys: &[(&["ps_partkey"], "part"), (&["ps_suppkey"], "supplier")],
        row_bytes: 148.7,
    },
    Shape {
        name: "orders",
        primary_key: &["o_orderkey"],
        foreign_keys: &[(&["o_custkey"], "customer")],
        row_bytes: 114.6,
    },
    Shape {
        name: "lineitem",
        primary_key: &["l_orderkey", "l_linenumber"],
        foreign_keys: &[
            (&["l_orderkey"], "orders"),
            (&["l_partkey"], "part"),
            (&["l_suppkey"], "supplier"),
            (&["l_partkey", "l_suppkey"], "partsupp"),
        ],
        row_bytes: 126.6,
    },
];
/// The names of the tables, parents before children.
pub fn tables() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|shape| shape.name)
}

/// The definition, with its keys, of the TPC-H table `name`; none if there is no such table.
///
/// ```
/// let orders = atoll::tpch::definition("orders").unwrap();
/// assert_eq!(orders.foreign_keys[0].parent, "customer");
/// assert!(atoll::tpch::definition("order").is_none());
/// ```
pub fn definition(name: &str) -> Option<Definition> {
    let shape = SHAPES.iter().find(|shape| shape.name == name)?;
    let schema = match name {
        "region" => RegionArrow::schema_ref(),
        "nation" => NationArrow::schema_ref(),
        "part" => PartArrow::schema_ref(),
        "supplier" => SupplierArrow::schema_ref(),
        "customer" => CustomerArrow::schema_ref(),
        "partsupp" => PartSuppArrow::schema_ref(),
        "orders" => OrderArrow::schema_ref(),
        _ => LineItemArrow::schema_ref(),
    };
    let place = |column: &&str| schema.index_of(column).ok();
    let mut definition = Definition::from_schema(name, &schema).ok()?;
    definition.primary_key = shape.primary_key.iter().filter_map(place).collect();
    for (columns, parent) in shape.foreign_keys {
        let of = SHAPES.iter().find(|shape| shape.name == *parent)?;
        definition.foreign_keys.push(ForeignKey {
            columns: columns.iter().filter_map(place).collect(),
            parent: (*parent).to_owned(),
            parent_columns: of
                .primary_key
                .iter()
                .map(|column| (*column).to_owned())
                .collect(),
        });
    }
    Some(definition)
}
