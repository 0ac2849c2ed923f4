-- What all scripts share: names of keys, windows, sessions, requests per minute, running requests.
-- ARGV: 1 prefix, 2 epoch, 3 node, 4 the node's time (ms), 5 session ttl (ms), 6-7 the week's span
-- (ms), 8-9 the month's span (ms). Money is kept as integers by HINCRBY (64 bits). Sums that are
-- compared are Lua numbers: exact up to 2^53 nano-USD (nine million USD); beyond that a comparison
-- may be off by two nano-USD, what is kept is not.
local call = redis.call
local G = ARGV[1] .. ':'
local P = G .. ARGV[2] .. ':'
local NODE = ARGV[3]
local TTL = tonumber(ARGV[5])
-- The present is Redis' own. A call whose time, or whose week or month, is not of this time changes
-- nothing: the answer is {'time', now}. It may be a little late, since it may have waited. With a
-- '=' before it (tests), its time is the present.
local NOW = tonumber(string.match(ARGV[4], '^=(%d+)$'))
if not NOW then
  local time = call('TIME')
  NOW = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
  local ahead = tonumber(ARGV[4]) - NOW
  if ahead > 1000 or ahead < -5000 or tonumber(ARGV[6]) > NOW or tonumber(ARGV[8]) > NOW then
    return { 'time', string.format('%.0f', NOW) }
  end
end
local WEEK_START, WEEK_END, MONTH_START, MONTH_END = ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local MINUTE = math.floor(NOW / 60000)
local KEEP, MAX_IDLE, EXACT_SLOTS = 1560, 4096, 1024
local BUCKETS_TTL, RUNNING_TTL, SLOTS_TTL = 27 * 3600000, 7 * 86400000, 120000
local ROLLING = { { '5', 300 }, { '24', 1440 } }

local function int(number) return string.format('%.0f', number) end
local function negated(amount)
  if amount == '0' then return amount end
  if string.sub(amount, 1, 1) == '-' then return string.sub(amount, 2) end
  return '-' .. amount
end
-- These counters are the ones in effect, and this node is not given up.
local function in_force() return call('GET', G .. 'epoch') == ARGV[2] and call('EXISTS', G .. 'dead:' .. NODE) == 0 end

-- Spent and reserved in the minutes from one to another (both included).
local function summed(holder, from, to)
  local spent, reserved = 0, 0
  local all = call('HGETALL', P .. 'b:' .. holder)
  for i = 1, #all, 2 do
    local minute = tonumber(string.sub(all[i], 2))
    if minute >= from and minute <= to then
      if string.sub(all[i], 1, 1) == 's' then spent = spent + tonumber(all[i + 1])
      else reserved = reserved + tonumber(all[i + 1]) end
    end
  end
  return spent, reserved
end

local function minutes(from, to)
  local fields = {}
  for minute = from, to do
    fields[#fields + 1] = 's' .. int(minute)
    fields[#fields + 1] = 'r' .. int(minute)
  end
  return fields
end

-- Brings the rolling sums, the week and the month up to this minute.
local function refresh(holder)
  local h, b = P .. 'h:' .. holder, P .. 'b:' .. holder
  local v = call('HMGET', h, 'minute', 'f5', 'f24', 'week', 'month')
  local before = v[1] and tonumber(v[1])
  if before and before >= MINUTE then return h end
  local set = { 'minute', int(MINUTE) }
  local function put(field, value) set[#set + 1] = field set[#set + 1] = value end
  for i, window in ipairs(ROLLING) do
    local name, length = window[1], window[2]
    local from, old = MINUTE - length, v[i + 1] and tonumber(v[i + 1])
    if old and from > old and from - old <= 60 then
      local aged = call('HMGET', b, unpack(minutes(old, from - 1)))
      for at = 1, #aged, 2 do
        if aged[at] then call('HINCRBY', h, 's' .. name, negated(aged[at])) end
        if aged[at + 1] then call('HINCRBY', h, 'r' .. name, negated(aged[at + 1])) end
      end
      put('f' .. name, int(from))
    elseif not old or from > old then
      local spent, reserved = summed(holder, from, MINUTE + KEEP)
      put('s' .. name, int(spent)) put('r' .. name, int(reserved)) put('f' .. name, int(from))
    end
  end
  if before and MINUTE - before > KEEP then call('DEL', b)
  elseif before then
    for from = before - KEEP, MINUTE - KEEP - 1, 500 do
      call('HDEL', b, unpack(minutes(from, math.min(from + 499, MINUTE - KEEP - 1))))
    end
  end
  if not v[4] or tonumber(WEEK_START) > tonumber(v[4]) then
    put('week', WEEK_START) put('week_end', WEEK_END) put('sw', '0') put('rw', '0')
  end
  if not v[5] or tonumber(MONTH_START) > tonumber(v[5]) then
    put('month', MONTH_START) put('month_end', MONTH_END) put('sm', '0') put('rm', '0')
  end
  call('HSET', h, unpack(set))
  return h
end

-- Sums the daily calendar window again when a day begins, or when another reset time holds.
local function begin_day(holder, h, starts, ends)
  if call('HGET', h, 'day') ~= starts then
    local spent, reserved = summed(holder, tonumber(starts) / 60000, MINUTE + KEEP)
    call('HSET', h, 'day', starts, 'day_end', ends, 'sd', int(spent), 'rd', int(reserved))
  end
end

-- Adds amounts (decimal texts) to every window that holds a request's start.
local function add(holder, started, spent, reserved)
  if spent == '0' and reserved == '0' then return end
  local h = refresh(holder)
  local minute = math.floor(started / 60000)
  local at = minute * 60000
  local v = call('HMGET', h, 'f5', 'f24', 'week', 'week_end', 'month', 'month_end', 'day', 'day_end')
  local function inside(from, to) return v[from] and tonumber(v[from]) <= at and at < tonumber(v[to]) end
  local kept = minute >= MINUTE - KEEP
  for kind, amount in pairs({ s = spent, r = reserved }) do
    if amount ~= '0' then
      call('HINCRBY', h, kind .. 't', amount)
      if inside(3, 4) then call('HINCRBY', h, kind .. 'w', amount) end
      if inside(5, 6) then call('HINCRBY', h, kind .. 'm', amount) end
      if inside(7, 8) then call('HINCRBY', h, kind .. 'd', amount) end
      if kept then
        call('HINCRBY', P .. 'b:' .. holder, kind .. int(minute), amount)
        if minute >= tonumber(v[1]) then call('HINCRBY', h, kind .. '5', amount) end
        if minute >= tonumber(v[2]) then call('HINCRBY', h, kind .. '24', amount) end
      end
    end
  end
  if kept then call('PEXPIRE', P .. 'b:' .. holder, BUCKETS_TTL) end
end

-- The figures of a holder that limits are compared with, and what of each is reserved, by the limit
-- block that begins at ARGV[at]: total, 5 h, daily, weekly, monthly, sessions, daily mode, the
-- day's span. Nothing is read where there is no spending limit.
local PERIODS = { 't', '5', 'd', 'w', 'm' }
local function figures(holder, at)
  local limited = false
  for i = 0, 4 do limited = limited or ARGV[at + i] ~= '' end
  if not limited then return {}, {} end
  local h = refresh(holder)
  local day = 'd'
  if ARGV[at + 6] == 'r' then day = '24'
  elseif ARGV[at + 2] ~= '' then begin_day(holder, h, ARGV[at + 7], ARGV[at + 8]) end
  local v = call('HMGET', h, 'st', 'rt', 's5', 'r5', 's' .. day, 'r' .. day, 'sw', 'rw', 'sm', 'rm')
  local held, reserved = {}, {}
  for i = 1, 5 do
    reserved[i] = tonumber(v[2 * i] or '0')
    held[i] = tonumber(v[2 * i - 1] or '0') + reserved[i]
  end
  return held, reserved
end

-- The minute with which a rolling sum falls below a limit; empty when it is none, or never.
local function falls_in(holder, length, held, limit)
  if limit <= 0 then return '' end
  local left = held
  for from = MINUTE - length, MINUTE, 60 do
    local fields = minutes(from, math.min(from + 59, MINUTE))
    local v = call('HMGET', P .. 'b:' .. holder, unpack(fields))
    for i = 1, #v, 2 do
      left = left - tonumber(v[i] or '0') - tonumber(v[i + 1] or '0')
      if (v[i] or v[i + 1]) and left < limit then return string.sub(fields[i], 2) end
    end
  end
  return ''
end

-- Sessions. `sets` hold "key:session" by the time it ends (running: never); `detail` is what is
-- known of one.
local function trim(set) call('ZREMRANGEBYSCORE', set, '-inf', int(NOW)) end
local function user_sets(uid, kid) return { P .. 'z:u' .. uid, P .. 'z:k' .. kid, P .. 'z' } end
local function detail_of(member) return P .. 's:' .. member end
local function detail_at(pid, member) return P .. 'ps:' .. pid .. ':' .. member end

local function enter(sets, detail, member, at, uid)
  trim(sets[1])
  if not call('ZSCORE', sets[1], member) then
    call('DEL', detail)
    call('HSET', detail, 'start', int(at), 'user', uid)
  end
  call('HINCRBY', detail, 'run', 1)
  call('HINCRBY', detail, 'requests', 1)
  call('PEXPIRE', detail, RUNNING_TTL)
  for _, set in ipairs(sets) do
    call('ZADD', set, '+inf', member)
    call('PEXPIRE', set, RUNNING_TTL)
  end
end

local function rest(sets, detail, member, ended)
  for _, set in ipairs(sets) do call('ZADD', set, int(ended + TTL), member) end
  call('PEXPIRE', detail, TTL + 60000)
  local over = call('ZCARD', sets[1]) - MAX_IDLE
  if over <= 0 then return end
  over = call('ZCOUNT', sets[1], '-inf', '(+inf') - MAX_IDLE
  if over <= 0 then return end
  for _, oldest in ipairs(call('ZRANGE', sets[1], 0, over - 1)) do
    call('ZREM', sets[1], oldest)
    if sets[2] then
      call('ZREM', P .. 'z:k' .. string.match(oldest, '^(%d*):'), oldest)
      call('ZREM', P .. 'z', oldest)
    end
  end
end

local function leave(sets, detail, member, cost, at)
  local v = call('HMGET', detail, 'run', 'end')
  if not v[1] or tonumber(v[1]) < 1 then return end
  local ended = math.max(tonumber(v[2] or '0'), at)
  local run = call('HINCRBY', detail, 'run', -1)
  call('HINCRBY', detail, 'cost', cost)
  call('HSET', detail, 'end', int(ended))
  if run == 0 then rest(sets, detail, member, ended) end
end

local function take_back(sets, detail, member)
  local v = call('HMGET', detail, 'run', 'end')
  if not v[1] or tonumber(v[1]) < 1 then return end
  call('HINCRBY', detail, 'requests', -1)
  if call('HINCRBY', detail, 'run', -1) > 0 then return end
  if v[2] then return rest(sets, detail, member, tonumber(v[2])) end
  for _, set in ipairs(sets) do call('ZREM', set, member) end
  call('DEL', detail)
end

-- Requests per minute: slots by time, with how many share each. Beyond a thousand, those of a tenth
-- of a second share one, at its end: it may count that much too long.
local function rpm(uid)
  local z, c = P .. 'rpm:' .. uid, P .. 'rpmc:' .. uid
  local old = call('ZRANGEBYSCORE', z, '-inf', int(NOW - 60000))
  for _, slot in ipairs(old) do
    call('HINCRBY', c, 'n', -tonumber(call('HGET', c, slot) or '0'))
    call('HDEL', c, slot)
  end
  if #old > 0 then call('ZREMRANGEBYSCORE', z, '-inf', int(NOW - 60000)) end
  return tonumber(call('HGET', c, 'n') or '0')
end

local function rpm_add(uid, at)
  local z, c = P .. 'rpm:' .. uid, P .. 'rpmc:' .. uid
  local slot = int(at)
  if call('ZCARD', z) >= EXACT_SLOTS then slot = int(math.floor(at / 100) * 100 + 99) end
  call('ZADD', z, slot, slot)
  call('HINCRBY', c, slot, 1)
  call('HINCRBY', c, 'n', 1)
  call('PEXPIRE', z, SLOTS_TTL)
  call('PEXPIRE', c, SLOTS_TTL)
  return slot
end

local function rpm_take_back(uid, slot)
  local z, c = P .. 'rpm:' .. uid, P .. 'rpmc:' .. uid
  if not call('ZSCORE', z, slot) then return end
  call('HINCRBY', c, 'n', -1)
  if call('HINCRBY', c, slot, -1) <= 0 then
    call('HDEL', c, slot)
    call('ZREM', z, slot)
  end
end

-- When fewer than `limit` requests will count.
local function rpm_below(uid, total, limit)
  for _, slot in ipairs(call('ZRANGE', P .. 'rpm:' .. uid, 0, -1)) do
    total = total - tonumber(call('HGET', P .. 'rpmc:' .. uid, slot) or '0')
    if total < limit then return int(tonumber(slot) + 60000) end
  end
  return ''
end

-- Running requests, by node: what they hold, so that a dead node's places can be given back.
local function note(node, request, held)
  call('HSET', P .. 'run:' .. node, request, cmsgpack.pack(held))
  call('PEXPIRE', P .. 'run:' .. node, RUNNING_TTL)
end
local function noted(node, request)
  local held = call('HGET', P .. 'run:' .. node, request)
  return held and cmsgpack.unpack(held)
end
local function unnote(node, request)
  local held = noted(node, request)
  if held then call('HDEL', P .. 'run:' .. node, request) end
  return held
end
local function member_of(held) return held.kid .. ':' .. held.sid end

local function leave_provider(held)
  if held.at == '' then return end
  add('p' .. held.at, held.started, '0', negated(held.reserved))
  take_back({ P .. 'z:p' .. held.at }, detail_at(held.at, member_of(held)), member_of(held))
  held.at = ''
end

-- As if the request had never been.
local function give_back(held)
  leave_provider(held)
  if held.uid == '' then return end
  add('u' .. held.uid, held.started, '0', negated(held.reserved))
  add('k' .. held.kid, held.started, '0', negated(held.reserved))
  if held.slot ~= '' then rpm_take_back(held.uid, held.slot) end
  take_back(user_sets(held.uid, held.kid), detail_of(member_of(held)), member_of(held))
end

-- What the latest request of a session asks for.
local function asks(member, model, format) call('HSET', detail_of(member), 'model', model, 'format', format) end

-- Counts a request of a user: session, reservation. The caller has checked.
local function take(held)
  enter(user_sets(held.uid, held.kid), detail_of(member_of(held)), member_of(held), held.started, held.uid)
  add('u' .. held.uid, held.started, '0', held.reserved)
  add('k' .. held.kid, held.started, '0', held.reserved)
end

local function enter_provider(held, pid)
  enter({ P .. 'z:p' .. pid }, detail_at(pid, member_of(held)), member_of(held), NOW, held.uid)
  add('p' .. pid, held.started, '0', held.reserved)
  held.at = pid
  if held.uid ~= '' and call('EXISTS', detail_of(member_of(held))) == 1 then
    call('HSET', detail_of(member_of(held)), 'provider', pid)
  end
end
