//! Tables about things that there are not here. They have no rows, and the columns that clients name.

use crate::scan::catalog::build::Built;

/// Names of columns: of numbers, of texts, of truth values.
type Columns = (
    &'static [&'static str],
    &'static [&'static str],
    &'static [&'static str],
);

/// The tables.
const TABLES: &[(&str, Columns)] = &[
    (
        "pg_aggregate",
        (
            &["aggfnoid", "aggtranstype", "aggsortop", "aggnumdirectargs"],
            &["aggkind", "aggtransfn", "aggfinalfn", "agginitval"],
            &["aggfinalextra"],
        ),
    ),
    (
        "pg_available_extensions",
        (
            &[],
            &["name", "default_version", "installed_version", "comment"],
            &[],
        ),
    ),
    (
        "pg_conversion",
        (
            &[
                "oid",
                "connamespace",
                "conowner",
                "conforencoding",
                "contoencoding",
            ],
            &["conname", "conproc"],
            &["condefault"],
        ),
    ),
    (
        "pg_default_acl",
        (
            &["oid", "defaclrole", "defaclnamespace"],
            &["defaclobjtype", "defaclacl"],
            &[],
        ),
    ),
    (
        "pg_depend",
        (
            &[
                "classid",
                "objid",
                "objsubid",
                "refclassid",
                "refobjid",
                "refobjsubid",
            ],
            &["deptype"],
            &[],
        ),
    ),
    ("pg_event_trigger", (&["oid"], &["evtname"], &[])),
    (
        "pg_extension",
        (
            &["oid", "extnamespace", "extowner"],
            &["extname", "extversion", "extconfig", "extcondition"],
            &["extrelocatable"],
        ),
    ),
    (
        "pg_foreign_data_wrapper",
        (
            &["oid", "fdwowner", "fdwhandler", "fdwvalidator"],
            &["fdwname", "fdwacl", "fdwoptions"],
            &[],
        ),
    ),
    ("pg_foreign_server", (&["oid"], &["srvname"], &[])),
    (
        "pg_foreign_table",
        (&["ftrelid", "ftserver"], &["ftoptions"], &[]),
    ),
    (
        "pg_inherits",
        (
            &["inhrelid", "inhparent", "inhseqno"],
            &[],
            &["inhdetachpending"],
        ),
    ),
    ("pg_language", (&["oid"], &["lanname"], &[])),
    (
        "pg_operator",
        (
            &["oid", "oprnamespace", "oprleft", "oprright", "oprresult"],
            &["oprname"],
            &[],
        ),
    ),
    (
        "pg_opclass",
        (
            &["oid", "opcmethod", "opcnamespace", "opcintype"],
            &["opcname"],
            &["opcdefault"],
        ),
    ),
    (
        "pg_partitioned_table",
        (&["partrelid"], &["partstrat"], &[]),
    ),
    (
        "pg_policies",
        (
            &[],
            &[
                "schemaname",
                "tablename",
                "policyname",
                "permissive",
                "roles",
                "cmd",
                "qual",
                "with_check",
            ],
            &[],
        ),
    ),
    (
        "pg_policy",
        (
            &["oid", "polrelid"],
            &["polname", "polcmd", "polroles", "polqual", "polwithcheck"],
            &["polpermissive"],
        ),
    ),
    (
        "pg_proc",
        (
            &[
                "oid",
                "pronamespace",
                "prorettype",
                "pronargs",
                "proowner",
                "prolang",
                "provariadic",
                "pronargdefaults",
            ],
            &[
                "proname",
                "prokind",
                "proargtypes",
                "proallargtypes",
                "proargmodes",
                "proargnames",
                "proargdefaults",
                "prosrc",
                "probin",
                "provolatile",
                "proparallel",
                "proconfig",
                "proacl",
            ],
            &[
                "proretset",
                "proisagg",
                "prosecdef",
                "proleakproof",
                "proisstrict",
            ],
        ),
    ),
    (
        "pg_publication",
        (&["oid", "pubowner"], &["pubname"], &["puballtables"]),
    ),
    (
        "pg_publication_rel",
        (&["oid", "prpubid", "prrelid"], &["prattrs", "prqual"], &[]),
    ),
    (
        "pg_range",
        (&["rngtypid", "rngsubtype", "rngmultitypid"], &[], &[]),
    ),
    (
        "pg_rewrite",
        (
            &["oid", "ev_class"],
            &["rulename", "ev_enabled"],
            &["is_instead"],
        ),
    ),
    (
        "pg_shdescription",
        (&["objoid", "classoid"], &["description"], &[]),
    ),
    (
        "pg_statistic_ext",
        (
            &["oid", "stxrelid", "stxnamespace", "stxstattarget"],
            &["stxname", "stxkind", "stxkeys"],
            &[],
        ),
    ),
    ("pg_tablespace", (&["oid", "spcowner"], &["spcname"], &[])),
    (
        "pg_trigger",
        (
            &["oid", "tgrelid", "tgfoid", "tgparentid", "tgconstraint"],
            &["tgname", "tgenabled"],
            &["tgisinternal"],
        ),
    ),
];

/// The table of that name, if it is one of these.
pub(super) fn columns(name: &str) -> Option<Built> {
    let (_, (numbers, texts, truths)) = TABLES.iter().find(|(known, _)| *known == name)?;
    let mut built = Built::default();
    for column in *numbers {
        built = built.numbers(column, []);
    }
    for column in *texts {
        built = match *column {
            "setconfig" | "ftoptions" | "extconfig" | "fdwoptions" | "fdwacl" | "defaclacl"
            | "proargnames" | "proargmodes" | "proallargtypes" | "proacl" => {
                built.no_lists(column, 0)
            }
            _ => built.nothing(column, 0),
        };
    }
    for column in *truths {
        built = built.truths(column, []);
    }
    Some(built)
}
