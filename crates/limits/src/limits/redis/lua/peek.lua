-- Which of several providers a session may not be given to now. ARGV: 3 member, 4 numbers: for each
-- provider its id and its limits. KEYS: from 2 the providers' hashes. Gives {'ok', '' or
-- what blocks it, …} or {'gone'}.
--include head
--include gone
--include limits
--include sessions
--include blocked
local found = { 'ok' }
for at = 1, #ARGV[4], 8 * (1 + ENDS) do
  local N = { struct.unpack('<d' .. string.rep('d', ENDS), ARGV[4], at) }
  local sc = scope('p', N[1])
  found[#found + 1] = blocked(sc, ARGV[3], N, 1) or ''
  keep(sc)
end
return found
