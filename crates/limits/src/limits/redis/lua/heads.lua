-- The heads of records, and the sessions, of requests that come ordered by holder and session (user,
-- key, session; or provider, key, session): each is read once and written once. The order is needed:
-- a session that came back after another one would be read again before it is written. What is done with them is text that the scripts include
-- (load_user, save_user, load_place, save_place), not functions: each run of a script
-- creates its functions again, which took a third of a call of one request. `reads_window`: whether the
-- requests of the minute are needed.
local pack, unpacked, BASE = struct.pack, struct.unpack, 4503599627370496
local HEAD, TAILED = '<dddddddd', '<ddddddddc0'

-- The user, the key and the session at hand, as they will be written, and whether they must be.
local hash, field, member, has_user, has_key, has_session
local is_new, is_new_key, is_new_session, is_new_window
local u_spent, u_reserved, u_next, u_room, u_tight, u_against, u_limits, window
local k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits
local runs, requests, served, begun, ended, cost_low, cost_high, score, asks
-- Other keys and sessions of the user: fields and values, and how many of both.
local set, count = {}, 0

-- The provider, and the session there; other sessions of the provider.
local p_hash, p_member, has_place, is_new_place
local p_minute, p_spent, p_reserved, p_next, p_room, p_tight, p_against, p_limits
local p_runs, p_requests, p_served, p_begun, p_ended, p_cost, p_costs, p_score
local p_set, p_count = {}, 0
