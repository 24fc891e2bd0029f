{{ config(materialized='materialized_view') }}
select reef, count(*) as n from {{ ref('by_reef') }} group by reef
