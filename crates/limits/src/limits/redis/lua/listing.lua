-- The live sessions of all users, the latest first. ARGV: 3 how many at most. Gives {'ok', {member,
-- figures…}, …} or {'gone'}.
--include head
--include gone
--include record
local found = { 'ok' }
for _, member in ipairs(call('ZREVRANGE', P .. 'z', 0, tonumber(ARGV[3]) - 1)) do
  local uid, rest = string.match(member, '^(%d*):(.*)$')
  local packed = call('HGET', P .. 'u:' .. uid, rest)
  if packed then
    local runs, requests, served, begun, ended, cost, costs = struct.unpack('<ddddddd', packed)
    if runs > 0 or ended + TTL > NOW then
      local model, format = string.match(string.sub(packed, 65), '^(.*)\n(%S*)$')
      found[#found + 1] = { rest, int(runs), int(begun), ended > 0 and int(ended) or '', int(requests),
        costs == 0 and int(cost) or int(cost) .. '+' .. int(costs), served > 0 and int(served) or '', uid,
        model or '', format or '' }
    end
  end
end
return found
