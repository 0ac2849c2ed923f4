-- A node's heartbeat. ARGV: 10 how long it holds (ms). Gives {'ok', nodes whose time is over…} or
-- {'gone'}. Redis's own clock counts, so that nodes need not agree on theirs.
if not in_force() then return { 'gone' } end
local time = call('TIME')
local ms = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
call('ZADD', G .. 'nodes', int(ms + tonumber(ARGV[10])), NODE)
local over = call('ZRANGEBYSCORE', G .. 'nodes', '-inf', int(ms), 'LIMIT', 0, 16)
return { 'ok', unpack(over) }
