--- A text that grows at its end. Its pieces are joined when all of it is asked for, so that a delta costs its own
--- length and not that of all that was said before.
local Text = {}
Text.__index = Text

--- A text that begins with `first`. Of one with `most` its end is kept, so many bytes at least and twice as many at
--- most: what is cut off goes in large pieces.
local function new(first, most)
  return setmetatable({ pieces = { first or "" }, bytes = #(first or ""), most = most, cuts = 0 }, Text)
end

--- Adds at the end.
function Text:append(piece)
  table.insert(self.pieces, piece)
  self.bytes = self.bytes + #piece
  if self.most and self.bytes > 2 * self.most then
    local kept = self:all():sub(-self.most):gsub("^[\128-\191]+", "")
    self.pieces, self.bytes, self.cuts = { kept }, #kept, self.cuts + 1
  end
end

--- All of it.
function Text:all()
  return table.concat(self.pieces)
end

--- What came behind the first `count` pieces.
function Text:since(count)
  return table.concat(self.pieces, "", count + 1)
end

return { new = new }
