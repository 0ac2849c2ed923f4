-- Makes the provider of hash `wanted` and the session `of` there those at hand.
if wanted ~= p_hash or of ~= p_member then
  local s
  if p_hash ~= wanted then
    --include save_place
    local found = call('HMGET', wanted, 'p', of)
    p_hash, p_minute, s = wanted, 0, found[2]
    if found[1] then
      p_minute, p_spent, p_reserved, p_next, p_room, p_tight, p_against, p_limits = unpacked(HEAD, found[1])
    end
  else
    --include put_place
    s = call('HGET', wanted, of)
  end
  p_member, has_place = of, s and p_minute == MINUTE
  if s then p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score = unpacked(HEAD, s) end
end
