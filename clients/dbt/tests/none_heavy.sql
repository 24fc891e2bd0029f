select * from {{ ref('stg_fish') }} where weight > 100
