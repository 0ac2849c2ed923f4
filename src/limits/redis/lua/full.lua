-- The full way of an admission (see admit.lua): every limit is compared with its sum, and what is
-- rarely due is done first.
--include rpm
--include sessions
--include rpm_rare
--include blocked
--include room
local PAIRS = { 10, 12, 0, 18, 20 }

-- Which check refuses, as an answer. `a`: the admission.
local function refusal(a)
  local N, u, k, w = a.N, a.u, a.k, a.w
  local function money(check, r, b, day, period, block, sums)
    local limit, sum = N[block + period], sums[period]
    if limit == FOREVER then return end
    local others = reserved(r, period == 3 and day or PAIRS[period])
    if sum < limit then
      if a.strict == 0 or others <= 0 or sum + (a.low + a.high * BASE) <= limit then return end
      return { check, int(sum), '', int(others) }
    end
    -- What requests in flight reserved is not spent yet.
    if sum - others < limit then return { check, int(sum), '', int(others) } end
    local reset = ''
    if period == 2 then reset = falls_in(r, b, 300, sum, limit)
    elseif period == 3 and day == 14 then reset = falls_in(r, b, 1440, sum, limit) end
    return { check, int(sum), reset }
  end
  local function sessions(check, set, limit)
    if limit == 0 or a.packed then return end
    local current = call('ZCARD', set)
    if current < limit then return end
    local reset = ''
    if current == limit then reset = first_end(a.sc, set) end
    return { check, int(current), reset }
  end
  local function per_minute()
    if a.most > 0 and w.n >= a.most then return { 5, int(w.n), rpm_below(w, a.most) } end
  end
  local function both(check, period)
    return money(check, k, a.kb, a.kday, period, 0, a.of_key) or money(check + 1, u, a.ub, a.uday, period, 9, a.of_user)
  end
  return both(1, 1) or sessions(3, a.kz, N[6]) or sessions(4, a.uz, N[15])
    or per_minute() or both(6, 2) or both(8, 3) or both(10, 4) or both(12, 5)
end

-- A place at the provider, if nothing there refuses.
local function placed(a, pid, mark)
  local sc = scope('p', pid)
  fetch(sc, { 'p', 'P', a.member })
  local is_free = not blocked(sc, a.member, a.N, 19)
  if is_free then
    enter(sc, a.member, NOW)
    local r = record(sc, 'p')
    add(r, sc.buckets, NOW, 0, 0, a.low, a.high)
    r.limits, r.room = mark, room_of(r, a.N, 18, a.N[25] == 1 and 16 or 14)
    sc.changed.p = true
  end
  keep(sc)
  return is_free
end

-- A new minute, a new day, sessions that may have ended.
local function bring_up(a)
  local N, u, k = a.N, a.u, a.k
  refresh(u, a.ub)
  refresh(k, a.kb)
  if N[7] == 1 then begin_day(k, a.kb, N[8], N[9]) end
  if N[16] == 1 then begin_day(u, a.ub, N[17], N[18]) end
  if u[22] > NOW then return end
  local sc = a.sc
  sc.f[a.member] = a.packed
  trim(sc)
  keep(sc)
  sc.changed = {}
  a.packed = call('HGET', sc.h, a.member)
end

full = function(op)
  local at, _, strict, uid, kid, low, high, most, k_mark, u_mark, pid, p_mark, request, field, member, asked, after = unpacked(REQUEST, op)
  local a = { strict = strict, low = low, high = high, most = most, member = member, sc = scope('u', uid) }
  -- The limits: 1-9 of the key, 10-18 of the user, 19-27 of the provider.
  a.N = { unpacked('<' .. string.rep('d', pid == 0 and 18 or 27), op, after) }
  local N, id, key = a.N, int(uid), string.sub(field, 2)
  a.ub, a.kb, a.uz, a.kz = P .. 'ub:' .. id, P .. 'kb:' .. key, P .. 'uz:' .. id, P .. 'kz:' .. key
  local found = call('HMGET', KEYS[at], 'u', 'U', field, body_of(field), member, 'r')
  local u, k, w = read(found[1], found[2], a.ub), read(found[3], found[4], a.kb), rpm_read(found[6], P .. 'ur:' .. id)
  a.u, a.k, a.w, a.packed = u, k, w, found[5]
  a.sc.recs.u = u
  rpm_expire(w)
  if u[1] < MINUTE or k[1] < MINUTE or (N[7] == 1 and (k[8] ~= N[8] or k[9] <= NOW)) or (N[16] == 1 and (u[8] ~= N[17] or u[9] <= NOW)) or u[22] <= NOW then
    bring_up(a)
  end

  -- The figures: total, 5 h, day, week, month.
  a.kday, a.uday = N[7] == 1 and 16 or 14, N[16] == 1 and 16 or 14
  a.of_key = { held(k, 10), held(k, 12), held(k, a.kday), held(k, 18), held(k, 20) }
  a.of_user = { held(u, 10), held(u, 12), held(u, a.uday), held(u, 18), held(u, 20) }
  local denied = refusal(a)
  -- What was put right for the answer stays so; what aged out is found again.
  keep(a.sc)
  local set = {}
  if denied then
    put_record(set, 'u', u)
    put_record(set, field, k)
    call('HSET', KEYS[at], 'r', rpm_written(w), unpack(set))
    return { denied[1], denied[2], denied[3], denied[4] or '', NOW }
  end

  local tightest, least, current = 0, FOREVER, 0
  for i = 1, 5 do
    local check = i == 1 and 1 or 2 * i + 2
    local left = N[i] - a.of_key[i]
    if left < least then tightest, least, current = check, left, a.of_key[i] end
    left = N[9 + i] - a.of_user[i]
    if left < least then tightest, least, current = check + 1, left, a.of_user[i] end
  end
  local runs, requests, served, begun, ended, cost, costs, score = 0, 0, 0, NOW, 0, 0, 0, FOREVER
  if a.packed then runs, requests, served, begun, ended, cost, costs, score = unpacked(HEAD, a.packed)
  else
    call('ZADD', a.uz, '+inf', member)
    call('ZADD', a.kz, '+inf', member)
    call('ZADD', P .. 'z', '+inf', id .. ':' .. member)
  end
  local before, place = served, 0
  if pid ~= 0 and (served == 0 or served == pid) and placed(a, pid, p_mark) then place, served = pid, pid end
  add(u, a.ub, NOW, 0, 0, low, high)
  add(k, a.kb, NOW, 0, 0, low, high)
  k.limits, u.limits = k_mark, u_mark
  k.room, k.tight, k.against = room_of(k, N, 0, a.kday)
  u.room, u.tight, u.against = room_of(u, N, 9, a.uday)
  if u.tight > 0 then u.tight = u.tight + 1 end
  local rate = w.n
  local slot = rpm_add(w, NOW)
  put_record(set, 'u', u)
  put_record(set, field, k)
  call('HSET', KEYS[at], 'r', rpm_written(w), member,
    pack(TAILED, runs + 1, requests + 1, served, begun, ended, cost, costs, score, asked), unpack(set))
  notes[noted + 1], notes[noted + 2] = request, pack(NOTE, slot, place, NOW, uid, kid, low, high, member)
  noted = noted + 2
  return pack(ANSWER, tightest, place == 0 and 0 or 1, before, current, rate, NOW)
end
