{{ config(materialized='incremental', unique_key='id') }}
select id, name, seen from {{ ref('stg_fish') }}
{% if is_incremental() %} where seen >= (select max(seen) from {{ this }}) {% endif %}
