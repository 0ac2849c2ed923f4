-- What a holder has used. KEYS: 2 the hash that has its record. ARGV: 3 the record's field, 4
-- numbers: user or provider, key (0: none), 1 if the day is fixed, the day's span. Gives {'ok',
-- last minute in which something was spent, sessions, requests of the minute}, and for each spending
-- limit what is spent and what is reserved; amounts as text, those above BASE in two parts.
--include head
--include gone
--include limits
--include rpm
--include sessions
local N = { struct.unpack('<ddddd', ARGV[4]) }
local sc = scope(ARGV[3] == 'p' and 'p' or 'u', N[1])
trim(sc)
local known, r = field(sc, ARGV[3]), record(sc, ARGV[3])
local b, latest = buckets(sc, ARGV[3]), 0
if N[3] == 1 and begin_day(r, b, N[4], N[5]) then sc.changed[ARGV[3]] = true end
local all = call('HGETALL', b)
for i = 1, #all, 2 do
  if string.sub(all[i], 1, 1) == 's' and all[i + 1] ~= '0' then latest = math.max(latest, tonumber(string.sub(all[i], 2))) end
end
for p = 23, 29, 3 do
  if r[p + 1] ~= 0 then latest = math.max(latest, r[p]) end
end
local sessions = call('ZCARD', N[2] == 0 and sc.z or P .. 'kz:' .. int(N[2]))
local requests = 0
if ARGV[3] == 'u' then
  local w = rpm_read(field(sc, 'r'), P .. 'ur:' .. sc.user)
  rpm_expire(w)
  requests, sc.window = w.n, known and w or nil
end
-- A holder that nothing was counted for gets no record.
if not known then sc.changed[ARGV[3]] = nil end
keep(sc)
local found = { 'ok', latest > 0 and int(latest) or '', int(sessions), int(requests) }
local function text(i)
  local high = r.high and r.high[i - 9] or 0
  return high == 0 and int(r[i]) or int(r[i]) .. '+' .. int(high)
end
for n, i in ipairs(SUMS[N[3]]) do found[2 * n + 3], found[2 * n + 4] = text(i), text(i + 1) end
return found
