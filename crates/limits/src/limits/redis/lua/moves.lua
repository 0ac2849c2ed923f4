-- What moves a request: counted for its user and key, at a provider, taken back. A running request
-- (`held`) is noted in the hash of its node by its id: slot among the requests of the minute (0:
-- none), provider (0: none), start, user (0: the admin token), key, reserved (two numbers), member.
--include rpm
--include sessions
--include rpm_rare
local NOTE, NOTE_BYTES = '<ddddddd', 57
local users, providers, key_fields = {}, {}, {}

local function key_field(kid)
  key_fields[kid] = key_fields[kid] or 'k' .. int(kid)
  return key_fields[kid]
end
local function user(uid) return scope_in(users, 'u', uid) end
local function provider(pid) return scope_in(providers, 'p', pid) end
local function window(sc)
  if not sc.window then
    sc.window = rpm_read(field(sc, 'r'), P .. 'ur:' .. sc.user)
    rpm_expire(sc.window)
  end
  return sc.window
end
local function keep_all()
  for _, sc in pairs(users) do keep(sc) end
  for _, sc in pairs(providers) do keep(sc) end
end

local function held_of(note)
  local slot, at, started, uid, kid, low, high = struct.unpack(NOTE, note)
  return { slot = slot, at = at, started = started, uid = uid, kid = kid, low = low, high = high,
    member = string.sub(note, NOTE_BYTES) }
end
local function note_of(o)
  return struct.pack(NOTE, o.slot, o.at, o.started, o.uid, o.kid, o.low, o.high) .. o.member
end

-- Adds to what the user and the key of a request spent and reserve.
local function count_pair(o, s, sh, v, vh)
  local sc = user(o.uid)
  count(sc, 'u', o.started, s, sh, v, vh)
  if o.kid ~= 0 then count(sc, key_field(o.kid), o.started, s, sh, v, vh) end
end

-- A request that was admitted while Redis was away is one of its session and of its minute.
local function add_request(o)
  local sc = user(o.uid)
  enter(sc, o.member, o.started, o.asks)
  if o.started > NOW - SLOT_TTL then o.slot = rpm_insert(window(sc), o.started) end
end
-- The session of a request is served by this provider.
local function served_by(o, pid)
  local s = session(user(o.uid), o.member)
  if s and s[3] ~= pid then s[3], user(o.uid).changed[o.member] = pid, true end
end

local function leave_provider(o)
  if o.at == 0 then return end
  local sc = provider(o.at)
  count(sc, 'p', o.started, 0, 0, -o.low, -o.high)
  take_back(sc, o.member)
  o.at = 0
end

local function enter_provider(o, pid)
  local sc = provider(pid)
  enter(sc, o.member, NOW)
  count(sc, 'p', o.started, 0, 0, o.low, o.high)
  o.at = pid
  if o.uid ~= 0 then served_by(o, pid) end
end

-- As if the request had never been.
local function give_back(o)
  leave_provider(o)
  if o.uid == 0 then return end
  local sc = user(o.uid)
  count_pair(o, 0, 0, -o.low, -o.high)
  if o.slot ~= 0 then rpm_take_back(window(sc), o.slot) end
  take_back(sc, o.member)
end
