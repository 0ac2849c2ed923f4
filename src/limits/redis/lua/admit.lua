-- The thirteen checks, in order, and the request counted: all of it or none; and its place at the
-- provider that is tried first, if that is asked for. KEYS: 2 the user's hash, 3 the provider's.
-- ARGV: 3 numbers (below), 4 member ("key:session"), 5 request, 6 the key's field, 7 the end of the
-- request's note, 8 what it asks for. A holder's nine limits: total, 5 h, daily, weekly, monthly
-- (inf: none), sessions, 1 if the day is fixed, the day's span.
-- Gives {'ok', provider of the live session (0: none), check of the money limit with the least room
-- (0: none), what counts against it, requests of the minute before this one, 1 if the place was
-- taken}, {'denied', check, current, minute or time of reset, and what others reserve where strict
-- reservation refuses} or {'gone'}.
--include head
--include gone
--include record
--include rpm
-- 1 user, 2 start, 3-4 reserved, 5 whether reservation is strict, 6 requests per minute, 7 provider
-- (0: no place is asked for), then the limits: 8-16 of the key, 17-25 of the user, 26-34 of the
-- provider.
local N = { struct.unpack('<' .. string.rep('d', 34), ARGV[3]) }
local member, started, low, high, pid = ARGV[4], math.min(N[2], NOW), N[3], N[4], N[7]
local found = call('HMGET', KEYS[2], 'u', ARGV[6], member, 'r')
local u, k, packed = read(found[1]), read(found[2]), found[3]
local uid, kid = string.format('%.0f', N[1]), string.sub(ARGV[6], 2)
local ub, kb = P .. 'ub:' .. uid, P .. 'kb:' .. kid
local w = rpm_read(found[4], P .. 'ur:' .. uid)
rpm_expire(w)

-- A new minute, a new day, sessions that may have ended: seldom.
if u[1] < MINUTE or k[1] < MINUTE or (N[14] == 1 and k[8] ~= N[15]) or (N[23] == 1 and u[8] ~= N[24]) or u[22] <= NOW then
  --include refresh
  refresh(u, ub)
  refresh(k, kb)
  if N[14] == 1 then begin_day(k, kb, N[15], N[16]) end
  if N[23] == 1 then begin_day(u, ub, N[24], N[25]) end
  if u[22] <= NOW then
    --include sessions
    local sc = scope_of_user(N[1])
    sc.recs.u, sc.f[member] = u, packed
    trim(sc)
    keep(sc)
    packed = call('HGET', KEYS[2], member)
  end
end

-- The figures: total, 5 h, day, week, month.
local kday, uday = N[14] == 1 and 16 or 14, N[23] == 1 and 16 or 14
local of_key = { held(k, 10), held(k, 12), held(k, kday), held(k, 18), held(k, 20) }
local of_user = { held(u, 10), held(u, 12), held(u, uday), held(u, 18), held(u, 20) }
local full = N[5] == 1 or (N[6] > 0 and w.n >= N[6])
for i = 1, 5 do full = full or of_key[i] >= N[7 + i] or of_user[i] >= N[16 + i] end
if not packed and not full then
  full = (N[13] > 0 and call('ZCARD', P .. 'kz:' .. kid) >= N[13]) or (N[22] > 0 and call('ZCARD', P .. 'uz:' .. uid) >= N[22])
end
if full then
  --include refresh
  --include rpm_rare
  --include sessions
  local sc = scope_of_user(N[1])
  sc.recs.u = u
  local PAIRS = { 10, 12, 0, 18, 20 }
  local function money(check, r, b, day, period, block, sums)
    local limit, sum = N[block + period], sums[period]
    if limit == FOREVER then return end
    local others = reserved(r, period == 3 and day or PAIRS[period])
    if sum < limit then
      if N[5] == 0 or others <= 0 or sum + (low + high * BASE) <= limit then return end
      return { 'denied', check, int(sum), '', int(others) }
    end
    local reset = ''
    if period == 2 then reset = falls_in(r, b, 300, sum, limit)
    elseif period == 3 and day == 14 then reset = falls_in(r, b, 1440, sum, limit) end
    return { 'denied', check, int(sum), reset }
  end
  local function sessions(check, set, limit)
    if limit == 0 or packed then return end
    local current = call('ZCARD', set)
    if current < limit then return end
    local reset = ''
    if current == limit then reset = first_end(sc, set) end
    return { 'denied', check, int(current), reset }
  end
  local function per_minute()
    if N[6] > 0 and w.n >= N[6] then return { 'denied', 5, int(w.n), rpm_below(w, N[6]) } end
  end
  local function both(check, period)
    return money(check, k, kb, kday, period, 7, of_key) or money(check + 1, u, ub, uday, period, 16, of_user)
  end
  local denied = both(1, 1) or sessions(3, P .. 'kz:' .. kid, N[13]) or sessions(4, P .. 'uz:' .. uid, N[22])
    or per_minute() or both(6, 2) or both(8, 3) or both(10, 4) or both(12, 5)
  -- What was put right for the answer stays so; what aged out is found again.
  keep(sc)
  if denied then
    call('HSET', KEYS[2], 'u', written(u), ARGV[6], written(k), 'r', rpm_written(w))
    return denied
  end
end

local tightest, room, current = 0, FOREVER, 0
for i = 1, 5 do
  local check = i == 1 and 1 or 2 * i + 2
  local left = N[7 + i] - of_key[i]
  if left < room then tightest, room, current = check, left, of_key[i] end
  left = N[16 + i] - of_user[i]
  if left < room then tightest, room, current = check + 1, left, of_user[i] end
end

-- The session: eight numbers, then what it asks for (see sessions.lua).
local runs, begun, ended, requests, cost, costs, served, score = 0, started, 0, 0, 0, 0, 0, FOREVER
if packed then runs, begun, ended, requests, cost, costs, served, score = struct.unpack('<dddddddd', packed)
else
  call('ZADD', P .. 'uz:' .. uid, '+inf', member)
  call('ZADD', P .. 'kz:' .. kid, '+inf', member)
  call('ZADD', P .. 'z', '+inf', uid .. ':' .. member)
end
local before, place = served, 0
if pid ~= 0 and (served == 0 or served == pid) then
  --include refresh
  --include sessions
  --include blocked
  local sc = scope_of_provider(pid)
  fetch(sc, { 'p', member })
  if not blocked(sc, member, N, 26) then
    enter(sc, member, NOW)
    count(sc, 'p', started, 0, 0, low, high)
    place, served = pid, pid
  end
  keep(sc)
end
add(u, ub, started, 0, 0, low, high)
add(k, kb, started, 0, 0, low, high)
local rate = w.n
local slot = rpm_add(w, NOW)
call('HSET', KEYS[2], 'u', written(u), ARGV[6], written(k), 'r', rpm_written(w), member,
  struct.pack('<dddddddd', runs + 1, begun, ended, requests + 1, cost, costs, served, score) .. ARGV[8])
call('HSET', KEYS[1], ARGV[5], struct.pack('<ddd', slot, place, started) .. ARGV[7])
return { 'ok', before, tightest, current, rate, place == 0 and 0 or 1 }
