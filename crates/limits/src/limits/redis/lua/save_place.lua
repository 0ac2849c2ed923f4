-- Writes the provider at hand, with its sessions.
if is_new_place or p_count > 0 then
  local p = pack(HEAD, MINUTE, p_spent, p_reserved, p_next, p_room, p_tight, p_against, p_limits)
  if p_count == 0 then
    call('HSET', p_hash, p_member, pack(HEAD, p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score), 'p', p)
  else
    --include put_place
    p_set[p_count + 1], p_set[p_count + 2] = 'p', p
    call('HSET', p_hash, unpack(p_set, 1, p_count + 2))
  end
end
p_hash, p_member, p_count, is_new_place = nil, nil, 0, false
