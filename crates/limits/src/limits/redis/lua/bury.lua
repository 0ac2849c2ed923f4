-- Gives back what a dead node's running requests held, some at a time. KEYS: 1 the hash of what
-- that node ran, 2 the nodes. Gives {'ok', how many are left}.
--include head
--include moves
call('HDEL', KEYS[1], '')
-- One step of a scan looks at a bounded part of the hash, which may have become empty.
local cursor, requests, ids = '0', {}, {}
repeat
  local page = call('HSCAN', KEYS[1], cursor, 'COUNT', 200)
  cursor, requests = page[1], page[2]
until #requests > 0 or cursor == '0'
for i = 1, math.min(#requests, 400), 2 do
  give_back(held_of(requests[i + 1]))
  ids[#ids + 1] = requests[i]
end
keep_all()
if #ids > 0 then call('HDEL', KEYS[1], unpack(ids)) end
local left = call('HLEN', KEYS[1])
if left == 0 then call('ZREM', KEYS[2], string.match(KEYS[1], '[^:]*$')) end
return { 'ok', int(left) }
