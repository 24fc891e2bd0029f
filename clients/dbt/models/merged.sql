{{ config(materialized='incremental', unique_key='id', incremental_strategy='merge') }}
select id, name, weight from {{ ref('stg_fish') }}
