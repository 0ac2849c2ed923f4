-- The heads of records, and the sessions, of requests that come ordered by user, key and session:
-- each is read once and written once. `reads_window`: whether the requests of the minute are
-- needed.
local pack, unpacked, BASE = struct.pack, struct.unpack, 4503599627370496
local HEAD, TAILED = '<dddddddd', '<ddddddddc0'

-- The user, the key and the session at hand, as they will be written.
local hash, field, member, set, has_user, has_key, has_session
local is_new, is_new_key, is_new_session, is_new_window
local u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits, window
local k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits
local runs, requests, served, begun, ended, cost_low, cost_high, score, asks
local function put_session()
  if not is_new_session then return end
  local n = #set
  set[n + 1], set[n + 2] = member, pack(TAILED, runs, requests, served, begun, ended, cost_low, cost_high, score, asks)
  is_new_session = false
end
local function put_key()
  if not is_new_key then return end
  local n = #set
  set[n + 1], set[n + 2] = field, pack(HEAD, MINUTE, k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits)
  is_new_key = false
end
local function save()
  if is_new then
    put_session()
    put_key()
    local n = #set
    set[n + 1], set[n + 2] = 'u', pack(HEAD, MINUTE, u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits)
    if is_new_window then set[n + 3], set[n + 4] = 'r', window end
    call('HSET', hash, unpack(set))
  end
  hash, field, is_new, is_new_window = nil, nil, false, false
end
local function load(wanted, name, of)
  local found, k
  if hash ~= wanted then
    save()
    found = reads_window and call('HMGET', wanted, of, name, 'u', 'r') or call('HMGET', wanted, of, name, 'u')
    k, window, has_user, hash, set = found[2], found[4], false, wanted, {}
    if found[3] and (window or not reads_window) then
      local minute
      minute, u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits = unpacked(HEAD, found[3])
      has_user = minute == MINUTE
    end
  else
    put_session()
    if field == name then found = { call('HGET', wanted, of) }
    else
      put_key()
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
  if not has_session then return end
  runs, requests, served, begun, ended, cost_low, cost_high, score, asks = unpacked(HEAD, has_session)
  asks = string.sub(has_session, asks)
end

-- The provider, and the session there.
local p_hash, p_member, p_set, has_place, is_new_place
local p_minute, p_spent, p_reserved, p_next, p_room, p_tight, p_against, p_limits
local p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score
local function put_place()
  if not is_new_place then return end
  local n = #p_set
  p_set[n + 1], p_set[n + 2] = p_member, pack(HEAD, p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score)
  is_new_place = false
end
local function save_place()
  if p_hash then
    put_place()
    local n = #p_set
    if n > 0 then
      p_set[n + 1], p_set[n + 2] = 'p', pack(HEAD, MINUTE, p_spent, p_reserved, p_next, p_room, p_tight, p_against, p_limits)
      call('HSET', p_hash, unpack(p_set))
    end
  end
  p_hash = nil
end
local function load_place(wanted, of)
  local s
  if p_hash ~= wanted then
    save_place()
    local found = call('HMGET', wanted, 'p', of)
    p_hash, p_set, p_minute, s = wanted, {}, 0, found[2]
    if found[1] then
      p_minute, p_spent, p_reserved, p_next, p_room, p_tight, p_against, p_limits = unpacked(HEAD, found[1])
    end
  else
    put_place()
    s = call('HGET', wanted, of)
  end
  p_member, has_place = of, s and p_minute == MINUTE
  if s then p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score = unpacked(HEAD, s) end
end

