-- Sessions of users who do not come back: more at a time than a batch can have begun, so that what
-- ended never gathers.
local swept = {}
for _, member in ipairs(call('ZRANGEBYSCORE', P .. 'z', '-inf', int(NOW), 'LIMIT', 0, 512)) do
  local uid, rest = string.match(member, '^(%d*):(.*)$')
  local sc = swept[uid]
  if not sc then
    sc = scope_of_user(tonumber(uid))
    swept[uid] = sc
  end
  put_right(sc, rest)
end
for _, sc in pairs(swept) do keep(sc) end
