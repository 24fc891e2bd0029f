select id, name, reef, cast(seen as timestamp) as seen, weight from {{ ref('fish') }}
