-- Which of several providers a session may not be given to now. ARGV: 3 member, 4 numbers: for each
-- provider its id and its nine limits. KEYS: from 2 the providers' hashes. Gives {'ok', '' or
-- what blocks it, …} or {'gone'}.
--include head
--include gone
--include sessions
--include blocked
local found = { 'ok' }
for at = 1, #ARGV[4], 80 do
  local N = { struct.unpack('<' .. string.rep('d', 10), ARGV[4], at) }
  local sc = scope('p', N[1])
  found[#found + 1] = blocked(sc, ARGV[3], N, 2) or ''
  keep(sc)
end
return found
