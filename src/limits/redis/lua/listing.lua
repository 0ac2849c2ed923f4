-- The live sessions of all users, the latest first. ARGV: 10 how many at most. Gives {'ok',
-- {member, figures…}, …} or {'gone'}.
if not in_force() then return { 'gone' } end
trim(P .. 'z')
local found = { 'ok' }
for _, member in ipairs(call('ZREVRANGE', P .. 'z', 0, tonumber(ARGV[10]) - 1)) do
  local v = call('HMGET', detail_of(member), 'run', 'start', 'end', 'requests', 'cost', 'provider', 'user',
    'model', 'format')
  local row = { member }
  for i = 1, 9 do row[#row + 1] = v[i] or '' end
  found[#found + 1] = row
end
return found
