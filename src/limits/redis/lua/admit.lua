-- The thirteen checks, in order, and the request counted: all of it or none. ARGV: 10 user, 11 key,
-- 12 session, 13 request, 14 reserved, 15-23 the key's limits, 24-32 the user's, 33 requests per
-- minute, 34 whether reservation is strict (1 or 0), 35 the request's start, 36 model, 37 format.
-- Gives {'ok', provider of the live session, check of the money limit with the least room (0:
-- none), what counts against it, requests of the minute before this one}, {'denied', check,
-- current, minute or time of reset, and what others reserve where strict reservation refuses} or
-- {'gone'}.
local KEY, USER = 15, 24
if not in_force() then return { 'gone' } end
local held = { uid = ARGV[10], kid = ARGV[11], sid = ARGV[12], started = math.min(tonumber(ARGV[35]), NOW), reserved = ARGV[14], slot = '', at = '' }
local member = member_of(held)
local sets = user_sets(held.uid, held.kid)
local STRICT, OWN = ARGV[34] == '1', tonumber(ARGV[14])
local of_key, key_reserved = figures('k' .. held.kid, KEY)
local of_user, user_reserved = figures('u' .. held.uid, USER)
trim(sets[1])
trim(sets[2])

local function money(check, holder, period, block, sums, reserved)
  local limit = ARGV[block + period - 1]
  if limit == '' then return end
  if sums[period] < tonumber(limit) then
    if not STRICT or reserved[period] <= 0 or sums[period] + OWN <= tonumber(limit) then return end
    return { 'denied', check, int(sums[period]), '', int(reserved[period]) }
  end
  local reset = ''
  if period == 2 then reset = falls_in(holder, 300, sums[period], tonumber(limit))
  elseif period == 3 and ARGV[block + 6] == 'r' then reset = falls_in(holder, 1440, sums[period], tonumber(limit)) end
  return { 'denied', check, int(sums[period]), reset }
end
local function sessions(check, set, block)
  local limit = tonumber(ARGV[block + 5])
  if limit == 0 then return end
  local current = call('ZCARD', set)
  if current < limit or call('ZSCORE', sets[1], member) then return end
  local reset = ''
  if current == limit then
    local first = call('ZRANGE', set, 0, 0, 'WITHSCORES')
    if first[2] and first[2] ~= 'inf' then reset = first[2] end
  end
  return { 'denied', check, int(current), reset }
end
local function per_minute()
  local limit = tonumber(ARGV[33])
  if limit == 0 then return end
  local current = rpm(held.uid)
  if current < limit then return end
  return { 'denied', 5, int(current), rpm_below(held.uid, current, limit) }
end
local function both(check, period)
  return money(check, 'k' .. held.kid, period, KEY, of_key, key_reserved)
    or money(check + 1, 'u' .. held.uid, period, USER, of_user, user_reserved)
end

local denied = both(1, 1) or sessions(3, sets[2], KEY) or sessions(4, sets[1], USER) or per_minute()
  or both(6, 2) or both(8, 3) or both(10, 4) or both(12, 5)
if denied then return denied end

local provider = ''
if call('ZSCORE', sets[1], member) then provider = call('HGET', detail_of(member), 'provider') or '' end
take(held)
asks(member, ARGV[36], ARGV[37])
local tightest, room, current = 0, nil, ''
local function compare(check, period, block, sums)
  local limit = ARGV[block + period - 1]
  if limit == '' then return end
  local left = tonumber(limit) - sums[period]
  if not room or left < room then tightest, room, current = check, left, int(sums[period]) end
end
for period, check in ipairs({ 1, 6, 8, 10, 12 }) do
  compare(check, period, KEY, of_key)
  compare(check + 1, period, USER, of_user)
end
local requests = rpm(held.uid)
held.slot = rpm_add(held.uid, NOW)
note(NODE, ARGV[13], held)
return { 'ok', provider, tightest, current, int(requests) }
