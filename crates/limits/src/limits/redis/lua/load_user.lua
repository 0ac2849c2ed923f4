-- Makes the user of hash `wanted`, the key of field `name` and the session `of` those at hand.
if wanted ~= hash or name ~= field or of ~= member then
  local found, k
  if hash ~= wanted then
    --include save_user
    if reads_window then found = call('HMGET', wanted, of, name, 'u', 'r')
    else found = call('HMGET', wanted, of, name, 'u') end
    k, window, has_user, hash = found[2], found[4], false, wanted
    if found[3] and (window or not reads_window) then
      local minute
      minute, u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits = unpacked(HEAD, found[3])
      has_user = minute == MINUTE
    end
  else
    --include put_session
    if field == name then found = { call('HGET', wanted, of) }
    else
      --include put_key
      found = call('HMGET', wanted, of, name)
      k = found[2]
    end
  end
  if field ~= name then
    field, has_key = name, false
    if k then
      local minute
      minute, k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits = unpacked(HEAD, k)
      has_key = minute == MINUTE
    end
  end
  member, has_session = of, found[1]
  if has_session then
    runs, requests, served, begun, ended, cost_low, cost_high, score, asks = unpacked(HEAD, has_session)
    asks = string.sub(has_session, asks)
  end
end
