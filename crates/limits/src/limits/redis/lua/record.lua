-- What a holder (user, key, provider) spent and has reserved, as two packed values: a head (field
-- `u`, `k<id>`, `p`), which is all that most calls need, and a body (the same in capitals). The
-- head is eight numbers: the minute of the last update; what was spent and what is reserved by
-- requests of that minute, which is in no sum of the body yet; when the first idle session may end
-- (user, provider); then what the last full check left for the next ones: the least room below a
-- limit, which check that is and what counted against it, and the limits that were checked, as a
-- number. The body is 31 numbers: 1 the minute; 2, 3 the first minutes of the rolling 5 h and 24 h;
-- 4-5 the week's span, 6-7 the month's, 8-9 the day's (ms); then pairs of spent and reserved: 10 in
-- total, 12 in 5 h, 14 in 24 h, 16 in the day, 18 in the week, 20 in the month; 22 as in the head;
-- 23, 26, 29 the latest three minutes with what was spent and reserved in each, by the minute
-- modulo three. Earlier minutes are in the hash of buckets. Amounts are nano-USD below BASE; what
-- is above is counted in twelve more numbers, in units of BASE, that follow only where one of them
-- is not zero. So every sum is exact.
local HEAD, REC, LIMBS = '<dddddddd', '<' .. string.rep('d', 31), '<' .. string.rep('d', 12)
local BASE, FOREVER = 4503599627370496, math.huge
local function int(number) return string.format('%.0f', number) end

local function fresh()
  return { MINUTE, MINUTE - 300, MINUTE - 1440, WEEK_START, WEEK_END, MONTH_START, MONTH_END, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, FOREVER, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
end
-- Brings every sum below BASE, and above zero where that is possible.
local function norm(r)
  local high = r.high or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
  local used = false
  for i = 10, 21 do
    while r[i] >= BASE do r[i], high[i - 9] = r[i] - BASE, high[i - 9] + 1 end
    if r[i] < 0 and high[i - 9] > 0 then r[i], high[i - 9] = r[i] + BASE, high[i - 9] - 1 end
    used = used or high[i - 9] ~= 0
  end
  r.high = used and high or nil
end

-- Adds to the bucket of a minute, in the hash.
local function add_bucket(b, minute, s, sh, v, vh)
  for field, amount in pairs({ s = s, r = v }) do
    if amount ~= 0 then call('HINCRBY', b, field .. int(minute), int(amount)) end
  end
  for field, amount in pairs({ s = sh, r = vh }) do
    if amount ~= 0 then call('HINCRBY', b, field .. int(minute), int(amount * BASE)) end
  end
  call('PEXPIRE', b, BUCKETS_TTL)
end

-- Adds what was spent and what is reserved (each below BASE, and units of BASE) to every window
-- that holds a request's start. `b` names the buckets.
local function add(r, b, started, s, sh, v, vh)
  local minute = math.floor(started / 60000)
  local at, large = minute * 60000, sh ~= 0 or vh ~= 0
  r[10], r[11] = r[10] + s, r[11] + v
  if minute >= r[2] then r[12], r[13] = r[12] + s, r[13] + v end
  if minute >= r[3] then r[14], r[15] = r[14] + s, r[15] + v end
  if r[8] <= at and at < r[9] then r[16], r[17] = r[16] + s, r[17] + v end
  if r[4] <= at and at < r[5] then r[18], r[19] = r[18] + s, r[19] + v end
  if r[6] <= at and at < r[7] then r[20], r[21] = r[20] + s, r[21] + v end
  if large then
    local high = r.high or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    local held = { true, minute >= r[2], minute >= r[3], r[8] <= at and at < r[9],
      r[4] <= at and at < r[5], r[6] <= at and at < r[7] }
    for i = 1, 6 do
      if held[i] then high[2 * i - 1], high[2 * i] = high[2 * i - 1] + sh, high[2 * i] + vh end
    end
    r.high = high
  end
  if r.high or r[10] >= BASE or r[11] >= BASE then norm(r) end
  if minute < MINUTE - KEEP then return end
  if large or minute < r[1] - 2 or minute > r[1] then return add_bucket(b, minute, s, sh, v, vh) end
  local p = 23 + 3 * (minute % 3)
  if r[p] ~= minute then r[p], r[p + 1], r[p + 2] = minute, 0, 0 end
  r[p + 1], r[p + 2] = r[p + 1] + s, r[p + 2] + v
  if r[p + 1] >= BASE or r[p + 2] >= BASE then
    add_bucket(b, minute, r[p + 1], 0, r[p + 2], 0)
    r[p], r[p + 1], r[p + 2] = 0, 0, 0
  end
end

-- The whole record: the amounts of its minute are in its sums, and the last check is forgotten.
local function read(head, body, b)
  if not head then return fresh() end
  local minute, spent, reserved, next = struct.unpack('<dddd', head)
  local r = { struct.unpack(REC, body) }
  if #body > 248 then r.high = { struct.unpack(LIMBS, body, 249) } end
  r[22] = next
  if spent ~= 0 or reserved ~= 0 then add(r, b, minute * 60000, spent, 0, reserved, 0) end
  return r
end
local function body_of(name) return string.upper(name) end
-- Adds head and body to a list of fields and values.
local function put_record(set, name, r)
  local n, body = #set, struct.pack(REC, unpack(r, 1, 31))
  if r.high then body = body .. struct.pack(LIMBS, unpack(r.high, 1, 12)) end
  set[n + 1], set[n + 3], set[n + 4] = name, body_of(name), body
  set[n + 2] = struct.pack(HEAD, r[1], 0, 0, r[22], r.room or -FOREVER, r.tight or 0, r.against or 0, r.limits or 0)
end

-- What counts against a limit: the pair of sums at a place.
local function held(r, i)
  local sum = r[i] + r[i + 1]
  return r.high and sum + (r.high[i - 9] + r.high[i - 8]) * BASE or sum
end
local function reserved(r, i) return r.high and r[i + 1] + r.high[i - 8] * BASE or r[i + 1] end
