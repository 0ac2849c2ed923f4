-- Drops the sessions that are due (see due.lua), if they have ended.
local swept = {}
for _, member in ipairs(due) do
  local uid, rest = string.match(member, '^(%d*):(.*)$')
  local sc = swept[uid]
  if not sc then
    sc = scope_of_user(tonumber(uid))
    swept[uid] = sc
  end
  put_right(sc, rest)
end
for _, sc in pairs(swept) do keep(sc) end
