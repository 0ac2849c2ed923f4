-- What a holder has used. ARGV: 10 holder, 11 daily mode, 12-13 the day's span, 14 the user whose
-- requests per minute are asked for, or empty. Gives {'ok', 5 h, day, week, month, total, last
-- minute in which something was spent, sessions, requests}, and what is reserved in the same five
-- windows.
if not in_force() then return { 'gone' } end
local holder = ARGV[10]
local set = P .. 'z:' .. holder
trim(set)
local requests = 0
if ARGV[14] ~= '' then requests = rpm(ARGV[14]) end
local sums, reserved, last = {}, {}, ''
if call('EXISTS', P .. 'h:' .. holder) == 1 then
  local h = refresh(holder)
  local day = 'd'
  if ARGV[11] == 'r' then day = '24' else begin_day(holder, h, ARGV[12], ARGV[13]) end
  sums = call('HMGET', h, 's5', 's' .. day, 'sw', 'sm', 'st')
  reserved = call('HMGET', h, 'r5', 'r' .. day, 'rw', 'rm', 'rt')
  local all, latest = call('HGETALL', P .. 'b:' .. holder), 0
  for i = 1, #all, 2 do
    if string.sub(all[i], 1, 1) == 's' and all[i + 1] ~= '0' then latest = math.max(latest, tonumber(string.sub(all[i], 2))) end
  end
  if latest > 0 then last = int(latest) end
end
local found = { 'ok' }
for i = 1, 5 do found[#found + 1] = sums[i] or '0' end
found[#found + 1] = last
found[#found + 1] = int(call('ZCARD', set))
found[#found + 1] = int(requests)
for i = 1, 5 do found[#found + 1] = reserved[i] or '0' end
return found
