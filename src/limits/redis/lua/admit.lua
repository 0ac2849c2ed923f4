-- The thirteen checks, in order, and the request counted: all of it or none; and its place at the
-- provider that is tried first, if that is asked for. KEYS: 2 the user's hash, 3 the provider's.
-- ARGV: 1, 2 see head.lua, 3 numbers (below), 4 member ("key:session"), 5 request, 6 the key's
-- field, 7 the end of the request's note, 8 what it asks for, 9 the limits of key, user and
-- provider: total, 5 h, daily, weekly, monthly (inf: none), sessions, 1 if the day is fixed, the
-- day's span. Gives {'ok', provider of the live session (0: none), check of the money limit with
-- the least room (0: none), what counts against it, requests of the minute before this one, 1 if
-- the place was taken}, {'denied', check, current, minute or time of reset, and what others reserve
-- where strict reservation refuses} or {'gone'}. Most requests need only the heads of the records
-- (see record.lua): where the last full check of this minute left more room than was used since,
-- and the session is live, nothing can refuse. All others take the full way below, which leaves the
-- room for the next ones.
--include head
if call('HEXISTS', KEYS[1], '') == 0 then return { 'gone' } end
-- 1 user, 2 start, 3-4 reserved, 5 whether reservation is strict, 6 requests per minute, 7 provider
-- (0: no place is asked for), 8-10 the limits of key, user and provider, as a number each.
local uid, started, low, high, strict, most, pid, key_limits, user_limits, provider_limits = struct.unpack('<dddddddddd', ARGV[3])
if started > NOW then started = NOW end
local member = ARGV[4]
local found = call('HMGET', KEYS[2], 'u', ARGV[6], member, 'r')

if found[1] and found[2] and found[3] and found[4] and high == 0 and started >= MINUTE * 60000 then
  local minute, u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits = struct.unpack('<dddddddd', found[1])
  local k_minute, k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits = struct.unpack('<dddddddd', found[2])
  local u_held, k_held, extra = u_spent + u_reserved, k_spent + k_reserved, strict * low
  local fits = minute == MINUTE and k_minute == MINUTE and u_limits == user_limits and k_limits == key_limits
    and u_next > NOW and u_held < u_room and k_held < k_room and u_held + extra <= u_room
    and k_held + extra <= k_room and u_reserved + low < 4503599627370496
  local runs, requests, served = struct.unpack('<ddd', found[3])
  local before, place, p, at_provider = served, 0, nil, nil
  if fits and pid ~= 0 and (served == 0 or served == pid) then
    p = call('HMGET', KEYS[3], 'p', member)
    fits = false
    if p[1] and p[2] then
      local p_minute, p_spent, p_reserved, p_next, p_room, _, _, p_limits = struct.unpack('<dddddddd', p[1])
      if p_minute == MINUTE and p_next > NOW and p_limits == provider_limits and p_spent + p_reserved < p_room
        and p_reserved + low < 4503599627370496 then
        local p_runs, p_requests = struct.unpack('<dd', p[2])
        at_provider = struct.pack('<dd', p_runs + 1, p_requests + 1) .. string.sub(p[2], 17)
        place, served, fits = pid, pid, true
        p = struct.pack('<ddd', MINUTE, p_spent, p_reserved + low) .. string.sub(p[1], 25)
      end
    end
  end
  if fits then
    local n, of_last, last, first, slots = struct.unpack('<ddddd', found[4])
    local rate, slot, w = n, NOW, nil
    if slots >= 1024 then slot = math.floor(NOW / 100) * 100 + 99 end
    if first > NOW - 60000 and slot <= last then
      slot, w = last, struct.pack('<dd', n + 1, of_last + 1) .. string.sub(found[4], 17)
    elseif first > NOW - 60000 and #found[4] < 240 then
      w = struct.pack('<ddddd', n + 1, 1, slot, first, slots + 1) .. string.sub(found[4], 41) .. struct.pack('<dI4', last, of_last)
    else
      --include rpm
      w = rpm_read(found[4], P .. 'ur:' .. string.format('%.0f', uid))
      rpm_expire(w)
      rate = w.n
      if most == 0 or rate < most then
        slot = rpm_add(w, NOW)
        w = rpm_written(w)
      else
        -- Refused, below. What aged out of the list is gone from there.
        found[4] = rpm_written(w)
      end
    end
    if most == 0 or rate < most then
      if at_provider then call('HSET', KEYS[3], 'p', p, member, at_provider) end
      call('HSET', KEYS[2], 'u', struct.pack('<ddd', MINUTE, u_spent, u_reserved + low) .. string.sub(found[1], 25),
        ARGV[6], struct.pack('<ddd', MINUTE, k_spent, k_reserved + low) .. string.sub(found[2], 25),
        'r', w, member, struct.pack('<ddd', runs + 1, requests + 1, served) .. string.sub(found[3], 25, 64) .. ARGV[8])
      call('HSET', KEYS[1], ARGV[5], struct.pack('<ddd', slot, place, started) .. ARGV[7])
      local u_left, k_left, is_placed = u_room - u_held, k_room - k_held, place == 0 and 0 or 1
      if u_tight ~= 0 and (k_tight == 0 or u_left < k_left or (u_left == k_left and u_tight < k_tight)) then
        return { 'ok', before, u_tight, u_against + u_held, rate, is_placed }
      end
      return { 'ok', before, k_tight, k_against + k_held, rate, is_placed }
    end
  end
end

--include record
--include rpm
-- The limits: 1-9 of the key, 10-18 of the user, 19-27 of the provider.
local N = { struct.unpack('<' .. string.rep('d', 27), ARGV[9]) }
local kid = string.sub(ARGV[6], 2)
local user = int(uid)
local ub, kb, uz, kz = P .. 'ub:' .. user, P .. 'kb:' .. kid, P .. 'uz:' .. user, P .. 'kz:' .. kid
local u, k, packed = read(found[1], ub), read(found[2], kb), found[3]
local w = rpm_read(found[4], P .. 'ur:' .. user)
rpm_expire(w)

-- A new minute, a new day, sessions that may have ended: seldom.
if u[1] < MINUTE or k[1] < MINUTE or (N[7] == 1 and k[8] ~= N[8]) or (N[16] == 1 and u[8] ~= N[17]) or u[22] <= NOW then
  --include refresh
  refresh(u, ub)
  refresh(k, kb)
  if N[7] == 1 then begin_day(k, kb, N[8], N[9]) end
  if N[16] == 1 then begin_day(u, ub, N[17], N[18]) end
  if u[22] <= NOW then
    --include sessions
    local sc = scope_of_user(uid)
    sc.recs.u, sc.f[member] = u, packed
    trim(sc)
    keep(sc)
    packed = call('HGET', KEYS[2], member)
  end
end

-- The figures: total, 5 h, day, week, month.
local kday, uday = N[7] == 1 and 16 or 14, N[16] == 1 and 16 or 14
local of_key = { held(k, 10), held(k, 12), held(k, kday), held(k, 18), held(k, 20) }
local of_user = { held(u, 10), held(u, 12), held(u, uday), held(u, 18), held(u, 20) }
local full = strict == 1 or (most > 0 and w.n >= most)
for i = 1, 5 do full = full or of_key[i] >= N[i] or of_user[i] >= N[9 + i] end
if not packed and not full then
  full = (N[6] > 0 and call('ZCARD', kz) >= N[6]) or (N[15] > 0 and call('ZCARD', uz) >= N[15])
end
if full then
  --include refresh
  --include rpm_rare
  --include sessions
  local sc = scope_of_user(uid)
  sc.recs.u = u
  local PAIRS = { 10, 12, 0, 18, 20 }
  local function money(check, r, b, day, period, block, sums)
    local limit, sum = N[block + period], sums[period]
    if limit == FOREVER then return end
    local others = reserved(r, period == 3 and day or PAIRS[period])
    if sum < limit then
      if strict == 0 or others <= 0 or sum + (low + high * BASE) <= limit then return end
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
    if most > 0 and w.n >= most then return { 'denied', 5, int(w.n), rpm_below(w, most) } end
  end
  local function both(check, period)
    return money(check, k, kb, kday, period, 0, of_key) or money(check + 1, u, ub, uday, period, 9, of_user)
  end
  local denied = both(1, 1) or sessions(3, kz, N[6]) or sessions(4, uz, N[15])
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
  local left = N[i] - of_key[i]
  if left < room then tightest, room, current = check, left, of_key[i] end
  left = N[9 + i] - of_user[i]
  if left < room then tightest, room, current = check + 1, left, of_user[i] end
end

--include room
-- The session: eight numbers, then what it asks for (see sessions.lua).
local runs, requests, served, begun, ended, cost, costs, score = 0, 0, 0, started, 0, 0, 0, FOREVER
if packed then runs, requests, served, begun, ended, cost, costs, score = struct.unpack('<dddddddd', packed)
else
  call('ZADD', uz, '+inf', member)
  call('ZADD', kz, '+inf', member)
  call('ZADD', P .. 'z', '+inf', user .. ':' .. member)
end
local before, place = served, 0
if pid ~= 0 and (served == 0 or served == pid) then
  --include refresh
  --include sessions
  --include blocked
  local sc = scope_of_provider(pid)
  fetch(sc, { 'p', member })
  if not blocked(sc, member, N, 19) then
    enter(sc, member, NOW)
    local r = record(sc, 'p')
    add(r, sc.buckets, started, 0, 0, low, high)
    r.limits, r.room = provider_limits, room_of(r, N, 18, N[25] == 1 and 16 or 14)
    sc.changed.p = true
    place, served = pid, pid
  end
  keep(sc)
end
add(u, ub, started, 0, 0, low, high)
add(k, kb, started, 0, 0, low, high)
k.limits, u.limits = key_limits, user_limits
k.room, k.tight, k.against = room_of(k, N, 0, kday)
u.room, u.tight, u.against = room_of(u, N, 9, uday)
if u.tight > 0 then u.tight = u.tight + 1 end
local rate = w.n
local slot = rpm_add(w, NOW)
call('HSET', KEYS[2], 'u', written(u), ARGV[6], written(k), 'r', rpm_written(w), member,
  struct.pack('<dddddddd', runs + 1, requests + 1, served, begun, ended, cost, costs, score) .. ARGV[8])
call('HSET', KEYS[1], ARGV[5], struct.pack('<ddd', slot, place, started) .. ARGV[7])
return { 'ok', before, tightest, current, rate, place == 0 and 0 or 1 }
