{{ config(materialized='table', indexes=[{'columns': ['reef']}]) }}
select reef, count(*) as fish, sum(weight) as weight from {{ ref('stg_fish') }} group by reef
