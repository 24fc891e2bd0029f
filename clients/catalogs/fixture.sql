-- What the recorded statements ask about.
drop schema if exists sea cascade;
create schema sea;
create table sea.reef (id bigint generated always as identity primary key, name varchar(40) not null unique, area numeric(10,2) default 1.5, seen date, at timestamptz);
create table sea.fish (reef bigint references sea.reef (id), place int, name varchar, primary key (reef, place));
create index fish_by_name on sea.fish (name);
create view sea.large as select id, name from sea.reef where area > 100;
create materialized view sea.counted as select reef, count(*) as fish from sea.fish group by reef;
create table if not exists coast (name varchar, length double precision, at timestamp);
comment on table sea.reef is 'Where fish live';
comment on column sea.reef.area is 'in hectares';
