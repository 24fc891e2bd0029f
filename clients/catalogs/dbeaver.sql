-- What DBeaver 24 asks a PostgreSQL server of version 15, in the order of its navigator. Only the statements are recorded, from
-- org.jkiss.dbeaver.ext.postgresql (PostgreDataSource, PostgreDatabase, PostgreSchema, PostgreTable, PostgreRole, PostgreExecutionContext).

-- for: the database that is open
SELECT current_database();
-- wanted: atoll

-- for: the schema and the user
SELECT current_schema(),session_user;
-- wanted: public|ann

-- for: what names are looked for in
SHOW search_path;
-- wanted: "$user", public

-- for: the version
SELECT version();

-- for: the list of databases
-- with: select 'atoll'
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE 1 = 1 AND datallowconn AND NOT datistemplate OR db.datname =$1
ORDER BY db.datname;
-- rows: 1
-- column: datname = atoll

-- for: one database
-- with: select 'atoll'
SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE datname=$1;
-- rows: 1

-- for: the comment of a database
-- with: select 'atoll'
select description from pg_shdescription join pg_database on objoid = pg_database.oid where datname = $1;
-- rows: 0

-- for: the sizes of databases
SELECT db.datname,pg_database_size(db.oid) FROM pg_catalog.pg_database db ;
-- column: datname = atoll

-- for: templates
SELECT db.datname FROM pg_catalog.pg_database db WHERE datistemplate;
-- rows: 0

-- for: settings
select * from pg_catalog.pg_settings;
-- column: name = search_path

-- for: one setting
-- with: select 'standard_conforming_strings'
select * from pg_catalog.pg_settings where name=$1;
-- column: setting = on

-- for: whether types have a category
SELECT typcategory FROM pg_catalog.pg_type WHERE 1<>1 LIMIT 1;
-- rows: 0

-- for: roles
SELECT a.oid,a.*,pd.description FROM pg_catalog.pg_roles a 
left join pg_catalog.pg_shdescription pd on a.oid = pd.objoid
ORDER BY a.rolname;
-- column: rolname = atoll

-- for: access methods
SELECT am.oid,am.* FROM pg_catalog.pg_am am 
ORDER BY am.oid;
-- column: amname = heap

-- for: encodings
SELECT c.contoencoding as encid,pg_catalog.pg_encoding_to_char(c.contoencoding) as encname
FROM pg_catalog.pg_conversion c
GROUP BY c.contoencoding
ORDER BY 2
;

-- for: collations
SELECT c.oid,c.* FROM pg_catalog.pg_collation c 
ORDER BY c.oid;

-- for: languages
SELECT l.oid,l.* FROM pg_catalog.pg_language l 
ORDER BY l.oid;

-- for: foreign data wrappers
SELECT l.oid,l.*,p.pronamespace as handler_schema_id FROM pg_catalog.pg_foreign_data_wrapper l
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid=l.fdwhandler 
ORDER BY l.fdwname;
-- rows: 0

-- for: foreign servers
SELECT l.oid,l.* FROM pg_catalog.pg_foreign_server l
ORDER BY l.srvname;
-- rows: 0

-- for: tablespaces
SELECT t.oid,t.*,pg_tablespace_location(t.oid) loc
FROM pg_catalog.pg_tablespace t 
ORDER BY t.oid;

-- for: extensions that there could be
SELECT name,default_version,installed_version,comment FROM pg_catalog.pg_available_extensions ORDER BY name;

-- for: event triggers
SELECT pet.*, d.description FROM pg_catalog.pg_event_trigger pet
LEFT OUTER JOIN pg_catalog.pg_description d ON pet."oid" = d.objoid;
-- rows: 0

-- for: extensions
SELECT 
 e.oid,
 cfg.tbls,
  n.nspname as schema_name,
 e.* 
FROM 
 pg_catalog.pg_extension e 
 join pg_namespace n on n.oid =e.extnamespace
 left join  (
         select
            ARRAY_AGG(ns.nspname || '.' ||  cls.relname) tbls, oid_ext
          from
            (
            select
                unnest(e1.extconfig) oid , e1.oid oid_ext
            from
                pg_catalog.pg_extension e1 ) c 
                join    pg_class cls on cls.oid = c.oid 
                join pg_namespace ns on ns.oid = cls.relnamespace
            group by oid_ext        
         ) cfg on cfg.oid_ext = e.oid
ORDER BY e.oid;

-- for: schemas
SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass
 ORDER BY nspname;
-- column: nspname = public
-- column: nspname = sea

-- for: types of a schema
-- with: select oid from pg_namespace where nspname = 'pg_catalog'
SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description
FROM pg_catalog.pg_type t
LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem 
LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid
WHERE t.typname IS NOT NULL
AND (c.relkind IS NULL OR c.relkind = 'c') AND (et.typcategory IS NULL OR et.typcategory <> 'C')
AND t.typnamespace=$1 ;
-- column: typname = numeric
-- column: typname = jsonb

-- for: values of enumerations
SELECT * FROM pg_catalog.pg_enum;
-- rows: 0

-- for: tables of a schema
-- with: select oid from pg_namespace where nspname = 'sea'
SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,  pg_catalog.pg_get_partkeydef(c.oid) as partition_key 
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace=$1 AND c.relkind not in ('i','I','c');
-- column: relname = fish
-- column: relname = large
-- column: relname = counted
-- column: description = Where fish live

-- for: one table
-- with: select oid, 'reef' from pg_namespace where nspname = 'sea'
SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr,  pg_catalog.pg_get_partkeydef(c.oid) as partition_key 
FROM pg_catalog.pg_class c
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass
WHERE c.relnamespace=$1 AND c.relkind not in ('i','I','c') AND relname=$2;
-- rows: 1

-- for: columns of a table
-- with: select c.oid from pg_class c join pg_namespace n on n.oid = relnamespace where relname = 'reef' and nspname = 'sea'
SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid
FROM pg_catalog.pg_attribute a
INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid)
LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum)
LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid)
LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum and dep.classid = dep.refclassid
WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.oid=$1
ORDER BY a.attnum;
-- rows: 11
-- column: attname = area
-- column: def_value = 1.5
-- column: description = in hectares

-- for: constraints of a schema
-- with: select oid from pg_namespace where nspname = 'sea'
SELECT c.oid,c.*,t.relname as tabrelname,rt.relnamespace as refnamespace,d.description, case when c.contype='c' then "substring"(pg_get_constraintdef(c.oid), 7) else null end consrc_copy
FROM pg_catalog.pg_constraint c
INNER JOIN pg_catalog.pg_class t ON t.oid=c.conrelid
LEFT OUTER JOIN pg_catalog.pg_class rt ON rt.oid=c.confrelid
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_constraint'::regclass
WHERE t.relnamespace=$1
ORDER BY c.oid;
-- column: conname = fish_pkey
-- column: conname = reef_name_key
-- column: contype = f

-- for: indexes of a table
-- with: select c.oid from pg_class c join pg_namespace n on n.oid = relnamespace where relname = 'fish' and nspname = 'sea'
SELECT i.*,i.indkey as keys,c.relname,c.relnamespace,c.relam,c.reltablespace,tc.relname as tabrelname,dsc.description,pg_catalog.pg_get_expr(i.indpred, i.indrelid) as pred_expr,pg_catalog.pg_get_expr(i.indexprs, i.indrelid, true) as expr,pg_catalog.pg_relation_size(i.indexrelid) as index_rel_size,pg_catalog.pg_stat_get_numscans(i.indexrelid) as index_num_scans
FROM pg_catalog.pg_index i
INNER JOIN pg_catalog.pg_class c ON c.oid=i.indexrelid
INNER JOIN pg_catalog.pg_class tc ON tc.oid=i.indrelid
LEFT OUTER JOIN pg_catalog.pg_description dsc ON i.indexrelid=dsc.objoid
WHERE  i.indrelid=$1 ORDER BY c.relname;
-- rows: 2
-- column: relname = fish_by_name
-- column: keys = 1 2

-- for: functions of a schema
-- with: select oid from pg_namespace where nspname = 'sea'
SELECT p.oid as poid,p.*,pg_catalog.pg_get_expr(p.proargdefaults, 0) as arg_defaults,d.description
FROM pg_catalog.pg_proc p
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=p.oid and d.classoid='pg_proc'::regclass  AND d.objsubid = 0
WHERE p.pronamespace=$1
ORDER BY p.proname;
-- rows: 0

-- for: aggregates of a schema
-- with: select oid from pg_namespace where nspname = 'sea'
SELECT p.oid AS proc_oid,p.proname AS proc_name,a.*
FROM pg_catalog.pg_aggregate a,pg_catalog.pg_proc p
WHERE p.oid=a.aggfnoid AND p.pronamespace=$1
ORDER BY p.proname;
-- rows: 0

-- for: sizes of tables
-- with: select oid from pg_namespace where nspname = 'sea'
select c.oid,pg_catalog.pg_total_relation_size(c.oid) as total_rel_size,pg_catalog.pg_relation_size(c.oid) as rel_size
FROM pg_class c
WHERE c.relnamespace=$1;

-- for: the size of one table
-- with: select oid, oid from pg_class where relname = 'reef'
select pg_catalog.pg_total_relation_size($1) as total_rel_size,pg_catalog.pg_relation_size($2) as rel_size;
-- rows: 1

-- for: inheritance in a schema
-- with: select oid from pg_namespace where nspname = 'sea'
SELECT i.inhrelid relid, pc.relnamespace parent_ns, pc.oid parent_oid, i.inhseqno
FROM pg_catalog.pg_inherits i, pg_class rc, pg_class pc
WHERE rc.oid=i.inhrelid AND rc.relnamespace=$1 AND pc.oid=i.inhparent;
-- rows: 0

-- for: where a table is referred to from
-- with: select c.oid from pg_class c join pg_namespace n on n.oid = relnamespace where relname = 'reef' and nspname = 'sea'
SELECT DISTINCT connamespace FROM pg_catalog.pg_constraint WHERE confrelid=$1;
-- rows: 1

-- for: policies of a table
-- with: select 'sea', 'reef'
select * from pg_catalog.pg_policies where schemaname=$1 and tablename=$2;
-- rows: 0

-- for: triggers of a table
-- with: select oid from pg_class where relname = 'reef'
SELECT x.oid,x.*,p.pronamespace as func_schema_id,d.description
FROM pg_catalog.pg_trigger x
LEFT OUTER JOIN pg_catalog.pg_proc p ON p.oid=x.tgfoid 
LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid=x.oid AND d.objsubid=0 
WHERE x.tgrelid = $1 AND NOT x.tgisinternal;
-- rows: 0

-- for: rules of a table
SELECT r.oid,r.*, pg_get_ruledef(r.oid) AS definition
FROM pg_rewrite r
WHERE r.ev_class=1 AND r.rulename <> '_RETURN'::name;
-- rows: 0

-- for: the text of a view
SELECT pg_get_viewdef('sea.large'::regclass, true);
-- holds: area > 100

-- for: default privileges
-- with: select oid from pg_namespace where nspname = 'sea'
SELECT * FROM pg_default_acl WHERE defaclnamespace = $1;
-- rows: 0

-- for: members of a role
-- with: select oid from pg_roles where rolname = 'atoll'
SELECT * FROM pg_catalog.pg_auth_members WHERE member=$1;
-- rows: 0

-- for: what a role may do with tables
-- with: select 'atoll', 'atoll'
SELECT * FROM information_schema.table_privileges WHERE table_catalog=$1 AND grantee=$2;

-- for: what a role may do with functions
-- with: select 'atoll', 'atoll'
SELECT * FROM information_schema.routine_privileges WHERE specific_catalog=$1 AND grantee=$2;

-- for: what a role may do with sequences, materialized views and schemas
-- with: select oid from pg_roles where rolname = 'atoll'
SELECT * FROM (
	SELECT DISTINCT relnamespace,
	relacl,
	relname,
	relkind,
(aclexplode(relacl)).grantee as granteeI
FROM
	pg_class
WHERE
	relacl IS NOT NULL
	AND relnamespace IN (
SELECT oid
FROM pg_namespace
WHERE nspname NOT LIKE 'pg_%' AND nspname != 'information_schema')
UNION ALL
SELECT DISTINCT
	n.oid AS relnamespace,
	nspacl AS relacl,
	n.nspname AS relname,
	cast('C' as "char") AS relkind,
(aclexplode(nspacl)).grantee as granteeI
FROM
	pg_catalog.pg_namespace n
WHERE
	n.nspacl IS NOT NULL 
	) AS tr
WHERE tr.granteeI=$1 AND tr.relkind IN('S', 'm', 'C');
-- rows: 0

-- for: a search by name
-- with: select 'ree%', 'ree%', 'ree%'
SELECT pc.oid,pc.relname,pc.relnamespace,pc.relkind FROM pg_catalog.pg_class pc WHERE pc.relkind in('r','v','m','f','p') AND (pc.relname ILIKE $1 OR obj_description(pc.oid, 'pg_class') ILIKE $2 OR (pc.relkind = 'v' AND pg_get_viewdef(pc."oid") ILIKE $3))ORDER BY pc.relname LIMIT 100;
-- column: relname = reef
