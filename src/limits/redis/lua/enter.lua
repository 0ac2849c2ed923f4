-- A request's place at a provider with limits: checked and taken in one step. ARGV: 10 request, 11
-- user, 12 key, 13 session, 14 started, 15 reserved, 16 provider, 17-25 its limits. Gives {'ok'},
-- {'blocked'} or {'gone'}.
if not in_force() then return { 'gone' } end
local held = noted(NODE, ARGV[10])
  or { uid = '', kid = ARGV[12], sid = ARGV[13], started = tonumber(ARGV[14]), reserved = ARGV[15], slot = '', at = '' }
if blocked(held, ARGV[16], 17) then return { 'blocked' } end
leave_provider(held)
enter_provider(held, ARGV[16])
note(NODE, ARGV[10], held)
return { 'ok' }
