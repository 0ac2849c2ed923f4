-- Adds the key at hand to what is written of its user.
if is_new_key then
  set[count + 1], set[count + 2] = field, pack(HEAD, MINUTE, k_spent, k_reserved, k_next, k_room, k_tight, k_against, k_limits)
  count, is_new_key = count + 2, false
end
