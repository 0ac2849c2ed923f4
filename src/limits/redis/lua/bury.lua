-- Gives back what a dead node's running requests held, some at a time. ARGV: 10 the dead node.
-- Gives {'ok', how many are left}.
call('SET', G .. 'dead:' .. ARGV[10], '1', 'PX', 86400000)
local requests = call('HSCAN', P .. 'run:' .. ARGV[10], '0', 'COUNT', 200)[2]
for i = 1, math.min(#requests, 400), 2 do
  local held = unnote(ARGV[10], requests[i])
  if held then give_back(held) end
end
local left = call('HLEN', P .. 'run:' .. ARGV[10])
if left == 0 then call('ZREM', G .. 'nodes', ARGV[10]) end
return { 'ok', int(left) }
