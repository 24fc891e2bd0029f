select b.reef, b.fish, k.n from {{ ref('by_reef') }} b join {{ ref('kept') }} k on k.reef = b.reef
