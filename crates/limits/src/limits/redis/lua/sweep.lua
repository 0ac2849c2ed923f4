-- Drops the sessions that are due (see due.lua), if they have ended.
local swept = {}
for _, member in ipairs(due) do
  local uid, rest = string.match(member, '^(%d*):(.*)$')
  put_right(scope_in(swept, 'u', tonumber(uid)), rest)
end
for _, sc in pairs(swept) do keep(sc) end
