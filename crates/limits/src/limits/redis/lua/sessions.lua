-- Sessions of a scope: a user (hash `u:`, over all keys) or a provider (hash `p:`). A field
-- "key:session" of the hash is one, as eight numbers: 1 requests that run, 2 requests, 3 provider,
-- 4 its start, 5 the end of its last request (0: none), 6-7 cost, 8 its score; then model, a line
-- feed, format. Sorted sets hold the live ones by a time before which they do not end (+inf:
-- unknown): a score is put right only when its time comes, so that a request that ends need not
-- touch them. The scope reads each field once and writes once, at its end.
--include refresh
local SESSION, MAX_IDLE = '<dddddddd', 4096

-- The scope of a user (`own`: 'u') or of a provider ('p').
local function scope(own, number)
  local id = int(number)
  return { h = P .. own .. ':' .. id, z = P .. own .. 'z:' .. id, own = own, buckets = P .. own .. 'b:' .. id,
    user = own == 'u' and id, f = {}, s = {}, recs = {}, light = {}, changed = {} }
end
-- The same one each time, kept in `all`.
local function scope_in(all, own, number)
  local sc = all[number]
  if not sc then
    sc = scope(own, number)
    all[number] = sc
  end
  return sc
end
-- Reads several fields at once.
local function fetch(sc, fields)
  local found = call('HMGET', sc.h, unpack(fields))
  for i, field in ipairs(fields) do sc.f[field] = found[i] end
end
local function field(sc, name)
  local found = sc.f[name]
  if found == nil then
    found = call('HGET', sc.h, name)
    sc.f[name] = found
  end
  return found
end
local function buckets(sc, name)
  return name == sc.own and sc.buckets or P .. 'kb:' .. string.sub(name, 2)
end
-- The head of a record, as long as that is all that is needed: spent and reserved of its minute can
-- be added there. False if there is no record, or one of an earlier minute.
local function light(sc, name)
  local l = sc.light[name]
  if l == nil then
    local packed = field(sc, name)
    l = false
    if packed then
      local minute, spent, reserved, next = struct.unpack('<dddd', packed)
      if minute == MINUTE then l = { spent = spent, reserved = reserved, next = next, packed = packed } end
    end
    sc.light[name] = l
  end
  return l
end
local function light_written(l)
  return struct.pack('<ddd', MINUTE, l.spent, l.reserved) .. string.sub(l.packed, 25)
end
-- A record of the scope, up to date: its own, or a key's.
local function record(sc, name)
  local r = sc.recs[name]
  if not r then
    local l, b = sc.light[name], buckets(sc, name)
    local head = l and light_written(l) or field(sc, name)
    r = read(head, head and field(sc, body_of(name)), b)
    if r[1] < MINUTE then
      refresh(r, b)
      sc.changed[name] = true
    end
    sc.recs[name] = r
  end
  return r
end
local function count(sc, name, started, s, sh, v, vh)
  if s == 0 and sh == 0 and v == 0 and vh == 0 then return end
  sc.changed[name] = true
  local l = not sc.recs[name] and sh == 0 and vh == 0 and math.floor(started / 60000) == MINUTE and light(sc, name)
  if l and l.spent + s < BASE and l.reserved + v < BASE then
    l.spent, l.reserved = l.spent + s, l.reserved + v
  else
    add(record(sc, name), buckets(sc, name), started, s, sh, v, vh)
  end
end
local function session(sc, member)
  local s = sc.s[member]
  if s == nil then
    local packed = field(sc, member)
    s = packed and { struct.unpack(SESSION, packed) } or false
    if s then s.asks = string.sub(packed, 65) end
    sc.s[member] = s
  end
  return s
end

local function score(sc, member, s, at)
  s[8] = at
  sc.changed[member] = true
  local text = at == FOREVER and '+inf' or int(at)
  call('ZADD', sc.z, text, member)
  if sc.user then
    call('ZADD', P .. 'kz:' .. string.match(member, '^%d*'), text, member)
    call('ZADD', P .. 'z', text, sc.user .. ':' .. member)
  end
  local own = record(sc, sc.own)
  if at < own[22] then own[22], sc.changed[sc.own] = at, true end
end
local function remove(sc, member)
  sc.s[member], sc.changed[member] = false, true
  call('ZREM', sc.z, member)
  if sc.user then
    call('ZREM', P .. 'kz:' .. string.match(member, '^%d*'), member)
    call('ZREM', P .. 'z', sc.user .. ':' .. member)
  end
end
-- Whether a session's score was right; it is afterwards, or the session is gone if it ended.
local function put_right(sc, member)
  local s = session(sc, member)
  if not s then remove(sc, member)
  elseif s[1] > 0 then score(sc, member, s, FOREVER)
  elseif s[5] + TTL <= NOW then remove(sc, member)
  elseif s[5] + TTL > s[8] then score(sc, member, s, s[5] + TTL)
  else return true end
end
-- Drops the sessions that ended.
local function trim(sc)
  local l = not sc.recs[sc.own] and light(sc, sc.own)
  if l and l.next > NOW then return end
  local own = record(sc, sc.own)
  if own[22] > NOW then return end
  for _, member in ipairs(call('ZRANGEBYSCORE', sc.z, '-inf', int(NOW))) do put_right(sc, member) end
  local first = call('ZRANGE', sc.z, 0, 0, 'WITHSCORES')[2]
  own[22] = (not first or first == 'inf') and FOREVER or tonumber(first)
  sc.changed[sc.own] = true
end
-- When the first idle session of a sorted set ends if no request follows; empty if none is idle.
local function first_end(sc, set)
  while true do
    local first = call('ZRANGE', set, 0, 0, 'WITHSCORES')
    if not first[2] or first[2] == 'inf' then return '' end
    if put_right(sc, first[1]) then return first[2] end
  end
end

local function enter(sc, member, at, asks)
  trim(sc)
  local s = session(sc, member)
  if not s then
    s = { 0, 0, 0, at, 0, 0, 0, FOREVER, asks = '' }
    sc.s[member] = s
    score(sc, member, s, FOREVER)
  end
  s[1], s[2], s.asks = s[1] + 1, s[2] + 1, asks or s.asks
  sc.changed[member] = true
end
-- The last request that ran has ended.
local function rest(sc, member, s)
  if s[8] ~= FOREVER then return end
  score(sc, member, s, s[5] + TTL)
  if call('ZCARD', sc.z) <= MAX_IDLE then return end
  while call('ZCOUNT', sc.z, '-inf', '(+inf') > MAX_IDLE do
    local oldest = call('ZRANGE', sc.z, 0, 0)[1]
    if put_right(sc, oldest) then remove(sc, oldest) end
  end
end
local function leave(sc, member, low, high, at)
  local s = session(sc, member)
  if not s or s[1] < 1 then return end
  s[1], s[5], s[6], s[7] = s[1] - 1, math.max(s[5], at), s[6] + low, s[7] + high
  if s[6] >= BASE then s[6], s[7] = s[6] - BASE, s[7] + 1 end
  sc.changed[member] = true
  if s[1] == 0 then rest(sc, member, s) end
end
local function take_back(sc, member)
  local s = session(sc, member)
  if not s or s[1] < 1 then return end
  s[1], s[2] = s[1] - 1, s[2] - 1
  sc.changed[member] = true
  if s[1] > 0 then return end
  if s[5] > 0 then rest(sc, member, s) else remove(sc, member) end
end
-- Writes what changed.
local function keep(sc)
  local set, del = {}, {}
  if sc.window then set[1], set[2] = 'r', rpm_written(sc.window) end
  for name in pairs(sc.changed) do
    local r, s, l = sc.recs[name], sc.s[name], sc.light[name]
    if r then put_record(set, name, r)
    elseif l then set[#set + 1], set[#set + 2] = name, light_written(l)
    elseif s then
      set[#set + 1], set[#set + 2] = name, struct.pack(SESSION, unpack(s, 1, 8)) .. s.asks
    else del[#del + 1] = name end
  end
  for at = 1, #set, 2000 do call('HSET', sc.h, unpack(set, at, math.min(at + 1999, #set))) end
  for at = 1, #del, 2000 do call('HDEL', sc.h, unpack(del, at, math.min(at + 1999, #del))) end
end
