{- Holds more and more, and lets some of it go: for profiles of its heap. -}
module Main where
import qualified Data.Map.Strict as M
import Control.Monad
import Debug.Trace
import Data.List (foldl')

data Rec = Rec { key :: !Int, name :: String, vals :: [Int] }

build :: Int -> M.Map Int Rec
build n = foldl' (\m i -> M.insert i (Rec i ("record " ++ show i) [i .. i + 20]) m) M.empty [1 .. n]
{-# NOINLINE build #-}

total :: M.Map Int Rec -> Int
total = sum . map (sum . vals) . M.elems
{-# NOINLINE total #-}

leak :: [[Int]] -> Int -> [[Int]]
leak acc i = let l = [i .. i + 2000] in sum l `seq` (l : acc)
{-# NOINLINE leak #-}

main :: IO ()
main = do
  traceMarkerIO "begin"
  let m = build 60000
  print (total m)
  traceMarkerIO "built"
  let loop acc i | i > 400 = return acc
                 | otherwise = do
                     let acc' = leak acc i
                     when (i `mod` 100 == 0) $ traceEventIO ("at " ++ show i)
                     acc' `seq` loop acc' (i + 1)
  r <- loop [] 0
  print (length (concat r))
  print (M.size m + sum (map length r))
  traceMarkerIO "end"
