# Loaded by rb_stacks.rb again and again.
work
class Loaded
  work
end
