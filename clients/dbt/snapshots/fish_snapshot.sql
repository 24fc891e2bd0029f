{% snapshot fish_snapshot %}
{{ config(target_schema='dbt_reefs', unique_key='id', strategy='check', check_cols=['name','weight']) }}
select * from {{ ref('fish') }}
{% endsnapshot %}
{% snapshot seen_snapshot %}
{{ config(target_schema='dbt_reefs', unique_key='id', strategy='timestamp', updated_at='seen') }}
select id, name, cast(seen as timestamp) as seen from {{ ref('fish') }}
{% endsnapshot %}
