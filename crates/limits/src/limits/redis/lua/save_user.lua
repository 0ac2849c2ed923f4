-- Writes the user at hand, with its keys and sessions.
if is_new then
  local u = pack(HEAD, MINUTE, u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits)
  if count == 0 and is_new_session and is_new_key then
    local k = pack(HEAD, MINUTE, k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits)
    local s = pack(TAILED, runs, requests, served, begun, ended, cost_low, cost_high, score, asks)
    if is_new_window then call('HSET', hash, member, s, field, k, 'u', u, 'r', window)
    else call('HSET', hash, member, s, field, k, 'u', u) end
  else
    --include put_session
    --include put_key
    set[count + 1], set[count + 2] = 'u', u
    count = count + 2
    if is_new_window then
      set[count + 1], set[count + 2] = 'r', window
      count = count + 2
    end
    call('HSET', hash, unpack(set, 1, count))
  end
end
hash, field, member, count = nil, nil, nil, 0
is_new, is_new_key, is_new_session, is_new_window = false, false, false, false
