-- The full way of an admission (see admit.lua): every limit is compared with its sum, and what is
-- rarely due is done first.
--include limits
--include rpm
--include sessions
--include rpm_rare
--include blocked
--include room

-- Which check refuses, as an answer. `a`: the admission. Notes the money limit with the least room.
local function refusal(a)
  local N, key, user, w = a.N, a.key, a.user, a.w
  local function money(check, holder, period)
    local limit, r, place = N[holder.from + period], holder.r, SUMS[N[holder.from + FIXED]][period]
    if limit == FOREVER then return end
    local sum, others = held(r, place), reserved(r, place)
    if sum < limit then
      if a.strict == 0 or others <= 0 or sum + (a.low + a.high * BASE) <= limit then
        if limit - sum < a.least then a.tightest, a.least, a.current = check, limit - sum, sum end
        return
      end
      return { check, int(sum), '', int(others) }
    end
    -- What requests in flight reserved is not spent yet.
    if sum - others < limit then return { check, int(sum), '', int(others) } end
    return { check, int(sum), falls_in(r, holder.buckets, place, sum, limit) }
  end
  local function sessions(check, holder)
    local limit = N[holder.from + CAP]
    if limit == 0 or a.packed then return end
    local current = call('ZCARD', holder.sessions)
    if current < limit then return end
    return { check, int(current), current == limit and first_end(a.sc, holder.sessions) or '' }
  end
  local function requests(check)
    if a.most > 0 and w.n >= a.most then return { check, int(w.n), rpm_below(w, a.most) } end
  end
  --include checks
end

-- A place at the provider, if nothing there refuses.
local function placed(a, pid, mark)
  local sc = scope('p', pid)
  fetch(sc, { 'p', 'P', a.member })
  local is_free = not blocked(sc, a.member, a.N, 2 * ENDS)
  if is_free then
    enter(sc, a.member, NOW)
    local r = record(sc, 'p')
    add(r, sc.buckets, NOW, 0, 0, a.low, a.high)
    r.limits, r.room = mark, room_of(r, a.N, 2 * ENDS)
    sc.changed.p = true
  end
  keep(sc)
  return is_free
end

-- Whether a fixed day begins for a holder.
local function is_new_day(N, holder)
  return N[holder.from + FIXED] == 1 and (holder.r[8] ~= N[holder.from + STARTS] or holder.r[9] <= NOW)
end

-- A new minute, a new day, sessions that may have ended.
local function bring_up(a)
  local N = a.N
  for _, holder in ipairs({ a.user, a.key }) do
    refresh(holder.r, holder.buckets)
    if N[holder.from + FIXED] == 1 then
      begin_day(holder.r, holder.buckets, N[holder.from + STARTS], N[holder.from + ENDS])
    end
  end
  if a.user.r[22] > NOW then return end
  local sc = a.sc
  sc.f[a.member] = a.packed
  trim(sc)
  keep(sc)
  sc.changed = {}
  a.packed = call('HGET', sc.h, a.member)
end

full = function(op)
  local at, _, strict, uid, kid, low, high, most, k_mark, u_mark, pid, p_mark, request, field, member, asked, after = unpacked(REQUEST, op)
  local id, number = int(uid), string.sub(field, 2)
  local key = { from = 0, buckets = P .. 'kb:' .. number, sessions = P .. 'kz:' .. number }
  local user = { from = ENDS, buckets = P .. 'ub:' .. id, sessions = P .. 'uz:' .. id }
  -- The limits: of the key, then of the user, then of the provider.
  local N = { unpacked('<' .. string.rep('d', (pid == 0 and 2 or 3) * ENDS), op, after) }
  local a = { N = N, key = key, user = user, strict = strict, low = low, high = high, most = most, member = member,
    sc = scope('u', uid), tightest = 0, least = FOREVER, current = 0 }
  local found = call('HMGET', KEYS[at], 'u', 'U', field, body_of(field), member, 'r')
  local u, k, w = read(found[1], found[2], user.buckets), read(found[3], found[4], key.buckets), rpm_read(found[6], P .. 'ur:' .. id)
  user.r, key.r, a.w, a.packed = u, k, w, found[5]
  a.sc.recs.u = u
  rpm_expire(w)
  if u[1] < MINUTE or k[1] < MINUTE or is_new_day(N, key) or is_new_day(N, user) or u[22] <= NOW then bring_up(a) end

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

  local runs, requests, served, begun, ended, cost, costs, score = 0, 0, 0, NOW, 0, 0, 0, FOREVER
  if a.packed then runs, requests, served, begun, ended, cost, costs, score = unpacked(HEAD, a.packed)
  else
    call('ZADD', user.sessions, '+inf', member)
    call('ZADD', key.sessions, '+inf', member)
    call('ZADD', P .. 'z', '+inf', id .. ':' .. member)
  end
  local before, place = served, 0
  if pid ~= 0 and (served == 0 or served == pid) and placed(a, pid, p_mark) then place, served = pid, pid end
  add(u, user.buckets, NOW, 0, 0, low, high)
  add(k, key.buckets, NOW, 0, 0, low, high)
  k.limits, u.limits = k_mark, u_mark
  k.room, k.tight, k.against = room_of(k, N, 0, CHECKS.key)
  u.room, u.tight, u.against = room_of(u, N, ENDS, CHECKS.user)
  local rate = w.n
  local slot = rpm_add(w, NOW)
  put_record(set, 'u', u)
  put_record(set, field, k)
  call('HSET', KEYS[at], 'r', rpm_written(w), member,
    pack(TAILED, runs + 1, requests + 1, served, begun, ended, cost, costs, score, asked), unpack(set))
  notes[noted + 1], notes[noted + 2] = request, pack(NOTE, slot, place, NOW, uid, kid, low, high, member)
  noted = noted + 2
  return pack(ANSWER, a.tightest, place == 0 and 0 or 1, before, a.current, rate, NOW)
end
