-- Which of several providers a session may not be given to now. ARGV: 10 key, 11 session, then for
-- each provider its id and its nine limits. Gives {'ok', '' or 'limit' or 'cap', …} or {'gone'}.
if not in_force() then return { 'gone' } end
local found = { 'ok' }
for at = 12, #ARGV, 10 do
  found[#found + 1] = blocked({ kid = ARGV[10], sid = ARGV[11] }, ARGV[at], at + 1) or ''
end
return found
