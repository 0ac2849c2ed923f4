-- The rare parts of a holder's record: a new minute, a new day, and when enough has aged out.
--include record
-- The lengths of the rolling sums, in minutes, by their places.
local ROLLING = { [12] = 300, [14] = 1440 }

-- An amount of a bucket as two numbers: below BASE, and in units of BASE.
local function amount(text)
  if not text then return 0, 0 end
  if #text <= 15 then return tonumber(text), 0 end
  local sign, low, high = 1, 0, 0
  if string.sub(text, 1, 1) == '-' then sign, text = -1, string.sub(text, 2) end
  -- Digit by digit, with a smaller base that leaves room for a factor of ten.
  for digit in string.gmatch(text, '%d') do
    low, high = low * 10 + tonumber(digit), high * 10
    local carry = math.floor(low / 281474976710656)
    low, high = low - carry * 281474976710656, high + carry
  end
  return sign * ((high % 16) * 281474976710656 + low), sign * math.floor(high / 16)
end

-- Adds (or, with -1, subtracts) an amount to the sum at a place.
local function put(r, i, low, high, sign)
  r[i] = r[i] + sign * low
  if high ~= 0 then
    r.high = r.high or { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }
    r.high[i - 9] = r.high[i - 9] + sign * high
  end
  if r.high or r[i] >= BASE then norm(r) end
end

-- Sums the buckets from a minute on, into the pair of sums at a place.
local function sum_from(r, b, i, from)
  r[i], r[i + 1] = 0, 0
  if r.high then r.high[i - 9], r.high[i - 8] = 0, 0 end
  local all = call('HGETALL', b)
  for n = 1, #all, 2 do
    local minute = tonumber(string.sub(all[n], 2))
    if minute >= from and minute <= MINUTE + KEEP then
      local low, high = amount(all[n + 1])
      put(r, string.sub(all[n], 1, 1) == 's' and i or i + 1, low, high, 1)
    end
  end
  for p = 23, 29, 3 do
    if r[p] >= from and r[p] > 0 then put(r, i, r[p + 1], 0, 1) put(r, i + 1, r[p + 2], 0, 1) end
  end
end

local function minutes(from, to)
  local fields = {}
  for minute = from, to do
    fields[#fields + 1] = 's' .. int(minute)
    fields[#fields + 1] = 'r' .. int(minute)
  end
  return fields
end

-- Brings a record up to this minute.
local function refresh(r, b)
  local before = r[1]
  if before >= MINUTE then return end
  for p = 23, 29, 3 do
    if r[p] > 0 and r[p] < MINUTE - 2 then
      if r[p] >= MINUTE - KEEP then add_bucket(b, r[p], r[p + 1], 0, r[p + 2], 0) end
      r[p], r[p + 1], r[p + 2] = 0, 0, 0
    end
  end
  for i, length in pairs(ROLLING) do
    local f = i / 2 - 4
    local from, old = MINUTE - length, r[f]
    if from > old and from - old <= 60 then
      local aged = call('HMGET', b, unpack(minutes(old, from - 1)))
      for n = 1, #aged, 2 do
        for at = 0, 1 do
          if aged[n + at] then
            local low, high = amount(aged[n + at])
            put(r, i + at, low, high, -1)
          end
        end
      end
    elseif from > old then
      sum_from(r, b, i, from)
    end
    if from > old then r[f] = from end
  end
  if MINUTE - before > KEEP then call('DEL', b)
  else
    for from = before - KEEP, MINUTE - KEEP - 1, 500 do
      call('HDEL', b, unpack(minutes(from, math.min(from + 499, MINUTE - KEEP - 1))))
    end
  end
  local function begin(i, at, starts, ends)
    if starts <= r[at] then return end
    r[at], r[at + 1], r[i], r[i + 1] = starts, ends, 0, 0
    if r.high then r.high[i - 9], r.high[i - 8] = 0, 0 end
  end
  begin(18, 4, WEEK_START, WEEK_END)
  begin(20, 6, MONTH_START, MONTH_END)
  r[1] = MINUTE
end

-- Sums the daily calendar window again when a day begins, or when another reset time holds. Returns
-- whether it did.
local function begin_day(r, b, starts, ends)
  -- The caller's day may have ended since (see head.lua). An open end is as good as the right one:
  -- nothing is counted ahead of the present.
  if ends <= NOW then starts, ends = ends, FOREVER end
  if r[8] == starts then return false end
  sum_from(r, b, 16, starts / 60000)
  r[8], r[9] = starts, ends
  return true
end

-- The minute with which the sum at a place falls below a limit; empty when it does not roll, or never.
local function falls_in(r, b, i, left, limit)
  local length = ROLLING[i]
  if not length or limit <= 0 then return '' end
  for from = MINUTE - length, MINUTE, 60 do
    local fields = minutes(from, math.min(from + 59, MINUTE))
    local v = call('HMGET', b, unpack(fields))
    for n = 1, #v, 2 do
      local minute = from + (n - 1) / 2
      local own = tonumber(v[n] or '0') + tonumber(v[n + 1] or '0')
      local p = 23 + 3 * (minute % 3)
      local is_here = r[p] == minute
      if is_here then own = own + r[p + 1] + r[p + 2] end
      left = left - own
      if (v[n] or v[n + 1] or is_here) and left < limit then return int(minute) end
    end
  end
  return ''
end
